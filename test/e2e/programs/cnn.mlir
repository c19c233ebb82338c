// A small convolutional network: pad, convolution, bias and relu, pooling, flatten, classifier.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x1x8x8xf32>, %w: tensor<4x1x3x3xf32>, %b: tensor<4xf32>, %v: tensor<64x5xf32>)
    -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?x1x8x8xf32>
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } {device.scope = #dev} : tensor<?x1x8x8xf32> to tensor<?x1x10x10xf32>
  %empty = tensor.empty(%n) : tensor<?x4x8x8xf32>
  %bias = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%b : tensor<4xf32>) outs(%empty : tensor<?x4x8x8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<?x4x8x8xf32>
  %conv = linalg.conv_2d_nchw_fchw {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%padded, %w : tensor<?x1x10x10xf32>, tensor<4x1x3x3xf32>) outs(%bias : tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  %zeros = tensor.splat %zero[%n] : tensor<?x4x8x8xf32>
  %relu = arith.maximumf %conv, %zeros {device.scope = #dev} : tensor<?x4x8x8xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %pool_empty = tensor.empty(%n) : tensor<?x4x4x4xf32>
  %pool_init = linalg.fill ins(%lowest : f32) outs(%pool_empty : tensor<?x4x4x4xf32>) -> tensor<?x4x4x4xf32>
  %pool = linalg.pooling_nchw_max {device.scope = #dev, dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%relu, %window : tensor<?x4x8x8xf32>, tensor<2x2xf32>) outs(%pool_init : tensor<?x4x4x4xf32>) -> tensor<?x4x4x4xf32>
  %flat = tensor.collapse_shape %pool [[0], [1, 2, 3]] : tensor<?x4x4x4xf32> into tensor<?x64xf32>
  %logits_empty = tensor.empty(%n) : tensor<?x5xf32>
  %logits_init = linalg.fill ins(%zero : f32) outs(%logits_empty : tensor<?x5xf32>) -> tensor<?x5xf32>
  %logits = linalg.matmul ins(%flat, %v : tensor<?x64xf32>, tensor<64x5xf32>)
                          outs(%logits_init : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %logits : tensor<?x5xf32>
}
