// scf.index_switch: work on either device, or none, by the case; what it yields is updated afterwards, which
// must not reach the arguments.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %which: index, %value: f32) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %0 = scf.index_switch %which -> tensor<?xf32>
  case 0 {
    %1 = math.exp %x {device.scope = #dev} : tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  case 2 {
    %1 = arith.negf %x : tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  default {
    scf.yield %x : tensor<?xf32>
  }
  %2 = arith.addf %0, %x {device.scope = #dev} : tensor<?xf32>
  %3 = scf.index_switch %which -> tensor<?xf32>
  case 1 {
    scf.yield %x : tensor<?xf32>
  }
  default {
    scf.yield %y : tensor<?xf32>
  }
  %4 = tensor.insert %value into %3[%c0] : tensor<?xf32>
  return %2, %4 : tensor<?xf32>, tensor<?xf32>
}
