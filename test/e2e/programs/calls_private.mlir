// A private function that is called on the results of both devices, so that it is needed on both; it calls
// another one.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @square(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.mulf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @polynomial(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @square(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = arith.addf %0, %x : tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = math.sin %x {device.scope = #dev} : tensor<?xf32>
  %1 = call @polynomial(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = math.cos %1 {device.scope = #dev} : tensor<?xf32>
  %3 = math.exp %y {device.scope = #host} : tensor<?xf32>
  %4 = call @polynomial(%3) : (tensor<?xf32>) -> tensor<?xf32>
  %5 = arith.negf %4 {device.scope = #host} : tensor<?xf32>
  return %2, %5 : tensor<?xf32>, tensor<?xf32>
}
