#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x : tensor<4xf32>
  %1 = device.on_device %0 on #dev {constrain_result = true} : tensor<4xf32>
  %2 = device.on_device %0 on #host {constrain_result = true} : tensor<4xf32>
  %3 = arith.addf %1, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
