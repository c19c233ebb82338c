func.func @f(%x: tensor<1x9x9x2xf32>, %k: tensor<3x3x2x5xf32>, %y: tensor<1x4x4x5xf32>, %w: tensor<3x3xf32>, %z: tensor<1x7x7x2xf32>) -> (tensor<1x4x4x5xf32>, tensor<1x7x7x2xf32>) {
  %0 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%x, %k : tensor<1x9x9x2xf32>, tensor<3x3x2x5xf32>) outs(%y : tensor<1x4x4x5xf32>) -> tensor<1x4x4x5xf32>
  %1 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x9x9x2xf32>, tensor<3x3xf32>) outs(%z : tensor<1x7x7x2xf32>) -> tensor<1x7x7x2xf32>
  return %0, %1 : tensor<1x4x4x5xf32>, tensor<1x7x7x2xf32>
}
