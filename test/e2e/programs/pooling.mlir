// Max and sum pooling, channels first and last, with strides; the window operand only gives the shape.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3x6x8xf32>, %y: tensor<2x7x7x4xf32>)
    -> (tensor<?x3x3x4xf32>, tensor<?x3x5x7xf32>, tensor<2x3x3x4xf32>, tensor<2x5x6x4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3x6x8xf32>
  %window2 = tensor.empty() : tensor<2x2xf32>
  %window3 = tensor.empty() : tensor<3x2xf32>
  %empty0 = tensor.empty(%n) : tensor<?x3x3x4xf32>
  %init0 = linalg.fill ins(%lowest : f32) outs(%empty0 : tensor<?x3x3x4xf32>) -> tensor<?x3x3x4xf32>
  %0 = linalg.pooling_nchw_max {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %window2 : tensor<?x3x6x8xf32>, tensor<2x2xf32>) outs(%init0 : tensor<?x3x3x4xf32>) -> tensor<?x3x3x4xf32>
  %empty1 = tensor.empty(%n) : tensor<?x3x5x7xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<?x3x5x7xf32>) -> tensor<?x3x5x7xf32>
  %1 = linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %window2 : tensor<?x3x6x8xf32>, tensor<2x2xf32>) outs(%init1 : tensor<?x3x5x7xf32>) -> tensor<?x3x5x7xf32>
  %empty2 = tensor.empty() : tensor<2x3x3x4xf32>
  %init2 = linalg.fill ins(%lowest : f32) outs(%empty2 : tensor<2x3x3x4xf32>) -> tensor<2x3x3x4xf32>
  %2 = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%y, %window3 : tensor<2x7x7x4xf32>, tensor<3x2xf32>) outs(%init2 : tensor<2x3x3x4xf32>) -> tensor<2x3x3x4xf32>
  %init3 = arith.constant dense<0.0> : tensor<2x5x6x4xf32>
  %3 = linalg.pooling_nhwc_sum {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%y, %window3 : tensor<2x7x7x4xf32>, tensor<3x2xf32>) outs(%init3 : tensor<2x5x6x4xf32>) -> tensor<2x5x6x4xf32>
  return %0, %1, %2, %3 : tensor<?x3x3x4xf32>, tensor<?x3x5x7xf32>, tensor<2x3x3x4xf32>, tensor<2x5x6x4xf32>
}
