// Depthwise convolution (every channel has its own filter) and a one-dimensional convolution.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x6x6x5xf32>, %w: tensor<3x3x5xf32>, %signal: tensor<20xf32>, %filter: tensor<4xf32>)
    -> (tensor<?x4x4x5xf32>, tensor<17xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x6x6x5xf32>
  %empty = tensor.empty(%n) : tensor<?x4x4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4x4x5xf32>) -> tensor<?x4x4x5xf32>
  %0 = linalg.depthwise_conv_2d_nhwc_hwc {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<?x6x6x5xf32>, tensor<3x3x5xf32>) outs(%init : tensor<?x4x4x5xf32>) -> tensor<?x4x4x5xf32>
  %init1 = arith.constant dense<0.0> : tensor<17xf32>
  %1 = linalg.conv_1d {device.scope = #dev} ins(%signal, %filter : tensor<20xf32>, tensor<4xf32>)
                                            outs(%init1 : tensor<17xf32>) -> tensor<17xf32>
  return %0, %1 : tensor<?x4x4x5xf32>, tensor<17xf32>
}
