// Channels-last convolution with dilations 2 and 1; i32 and f32.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<2x8x7x3xf32>, %w: tensor<3x2x3x4xf32>, %xi: tensor<1x5x5x2xi32>, %wi: tensor<2x2x2x3xi32>)
    -> (tensor<2x4x6x4xf32>, tensor<1x2x2x3xi32>) {
  %init = arith.constant dense<0.0> : tensor<2x4x6x4xf32>
  %0 = linalg.conv_2d_nhwc_hwcf {device.scope = #dev, dilations = dense<[2, 1]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<2x8x7x3xf32>, tensor<3x2x3x4xf32>) outs(%init : tensor<2x4x6x4xf32>) -> tensor<2x4x6x4xf32>
  %initi = arith.constant dense<0> : tensor<1x2x2x3xi32>
  %1 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%xi, %wi : tensor<1x5x5x2xi32>, tensor<2x2x2x3xi32>) outs(%initi : tensor<1x2x2x3xi32>) -> tensor<1x2x2x3xi32>
  return %0, %1 : tensor<2x4x6x4xf32>, tensor<1x2x2x3xi32>
}
