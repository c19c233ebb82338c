// Channels-first convolution with strides 2 and 1, bias and relu.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3x9x8xf32>, %w: tensor<4x3x3x2xf32>, %bias: tensor<4xf32>) -> tensor<?x4x4x7xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3x9x8xf32>
  %empty = tensor.empty(%n) : tensor<?x4x4x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4x4x7xf32>) -> tensor<?x4x4x7xf32>
  %0 = linalg.conv_2d_nchw_fchw {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%x, %w : tensor<?x3x9x8xf32>, tensor<4x3x3x2xf32>) outs(%init : tensor<?x4x4x7xf32>) -> tensor<?x4x4x7xf32>
  %1 = linalg.generic {
    indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>,
                     affine_map<(n, c, h, w) -> (n, c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%0, %bias : tensor<?x4x4x7xf32>, tensor<4xf32>) outs(%empty : tensor<?x4x4x7xf32>) {
  ^bb0(%value: f32, %b: f32, %out: f32):
    %sum = arith.addf %value, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<?x4x4x7xf32>
  return %1 : tensor<?x4x4x7xf32>
}
