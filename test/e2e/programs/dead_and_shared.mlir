// Unused arguments, unused results and work whose result nobody needs; a constant used on both devices.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @pair(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = math.exp %x : tensor<?xf32>
  %1 = arith.negf %x : tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %unused: tensor<?x?xf64>, %nothing: i1) -> (tensor<?xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:2 = call @pair(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %1 = math.sin %0#0 {device.scope = #dev} : tensor<?xf32>
  %2 = math.absf %0#1 {device.scope = #dev} : tensor<?xf32>
  %table = arith.constant dense<[0.5, 1.5, -2.5]> : tensor<3xf32>
  %3 = math.floor %table {device.scope = #dev} : tensor<3xf32>
  %4 = math.ceil %table {device.scope = #host} : tensor<3xf32>
  return %2, %3, %4 : tensor<?xf32>, tensor<3xf32>, tensor<3xf32>
}
