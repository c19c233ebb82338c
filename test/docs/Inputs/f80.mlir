#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.extf %x {device.scope = #dev} : tensor<4xf32> to tensor<4xf80>
  %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf80>
  %2 = arith.truncf %1 {device.scope = #dev} : tensor<4xf80> to tensor<4xf32>
  return %2 : tensor<4xf32>
}
