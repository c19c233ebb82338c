// scf.index_switch: work on either device, or none, by the case.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %which: index) -> tensor<?xf32> {
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
  return %2 : tensor<?xf32>
}
