// StableHLO: a dense layer with dynamic rows, a reduction, a comparison, a reshape.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>)
    -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3x?xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {device.scope = #dev}
    : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.tanh %0 {device.scope = #dev} : tensor<?x3xf32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = stablehlo.add %2, %b {device.scope = #dev} : tensor<3xf32>
  %4 = stablehlo.transpose %1, dims = [1, 0] {device.scope = #dev} : (tensor<?x3xf32>) -> tensor<3x?xf32>
  return %1, %3, %4 : tensor<?x3xf32>, tensor<3xf32>, tensor<3x?xf32>
}
func.func @chosen(%x: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<24xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<3xf32>) -> tensor<8x3xf32>
  %1 = stablehlo.compare LT, %x, %0 {device.scope = #dev} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xi1>
  %2 = stablehlo.select %1, %0, %x {device.scope = #dev} : tensor<8x3xi1>, tensor<8x3xf32>
  %3 = stablehlo.reshape %2 : (tensor<8x3xf32>) -> tensor<24xf32>
  return %3 : tensor<24xf32>
}
