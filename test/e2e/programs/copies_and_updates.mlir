// A tensor of the host that is copied to two devices at different times. That the second copy is of the same
// tensor only shows once the branches are folded; in between, the choice between two tensors is a candidate for
// being made in the tensor's memory.
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %flag: i1, %s: f32) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %0 = math.exp %x {device.scope = #host} : tensor<?xf32>
  %1 = math.sin %0 {device.scope = #first} : tensor<?xf32>
  %2 = scf.if %flag -> (tensor<?xf32>) {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %0 : tensor<?xf32>
  }
  %3 = scf.if %flag -> (tensor<?xf32>) {
    scf.yield %0 : tensor<?xf32>
  } else {
    scf.yield %2 : tensor<?xf32>
  }
  %kept = "device.on_device"(%3) {scope = #host, constrain_body = true, constrain_result = false}
    : (tensor<?xf32>) -> tensor<?xf32>
  %4 = math.sqrt %kept {device.scope = #second} : tensor<?xf32>
  %5 = tensor.insert %s into %2[%c0] {device.scope = #host} : tensor<?xf32>
  return %1, %4, %5 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
