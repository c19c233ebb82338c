// A small convolutional network: convolution, bias, relu, pooling and a dense layer on opencl:0, softmax where
// the planner's default is (the host).
#device = #device.scope<"opencl", 0 : i64, "", "">
#nchw = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
#scores = affine_map<(n, k) -> (n, k)>
#score = affine_map<(n, k) -> (k)>

// images: [8, 1, 28, 28], filters: [6, 1, 5, 5], weights: [864, 10] -> probabilities: [8, 10]
func.func @main(%images: tensor<8x1x28x28xf32>, %filters: tensor<6x1x5x5xf32>, %bias: tensor<6xf32>,
                %weights: tensor<864x10xf32>, %offsets: tensor<10xf32>) -> tensor<8x10xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32

  %maps = tensor.empty() : tensor<8x6x24x24xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%maps : tensor<8x6x24x24xf32>) -> tensor<8x6x24x24xf32>
  %convolved = linalg.conv_2d_nchw_fchw {device.scope = #device}
      ins(%images, %filters : tensor<8x1x28x28xf32>, tensor<6x1x5x5xf32>)
      outs(%zeros : tensor<8x6x24x24xf32>) -> tensor<8x6x24x24xf32>
  %activated = linalg.generic {indexing_maps = [#nchw, #channel, #nchw],
                               iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%convolved, %bias : tensor<8x6x24x24xf32>, tensor<6xf32>) outs(%maps : tensor<8x6x24x24xf32>)
      attrs = {device.scope = #device} {
  ^bb0(%value: f32, %b: f32, %unused: f32):
    %sum = arith.addf %value, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<8x6x24x24xf32>

  %window = tensor.empty() : tensor<2x2xf32>
  %small = tensor.empty() : tensor<8x6x12x12xf32>
  %first = linalg.fill ins(%lowest : f32) outs(%small : tensor<8x6x12x12xf32>) -> tensor<8x6x12x12xf32>
  %pooled = linalg.pooling_nchw_max {device.scope = #device, strides = dense<2> : vector<2xi64>}
      ins(%activated, %window : tensor<8x6x24x24xf32>, tensor<2x2xf32>)
      outs(%first : tensor<8x6x12x12xf32>) -> tensor<8x6x12x12xf32>

  %flat = tensor.collapse_shape %pooled [[0], [1, 2, 3]] : tensor<8x6x12x12xf32> into tensor<8x864xf32>
  %empty = tensor.empty() : tensor<8x10xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x10xf32>) -> tensor<8x10xf32>
  %product = linalg.matmul {device.scope = #device}
      ins(%flat, %weights : tensor<8x864xf32>, tensor<864x10xf32>) outs(%none : tensor<8x10xf32>) -> tensor<8x10xf32>
  %logits = linalg.generic {indexing_maps = [#scores, #score, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%product, %offsets : tensor<8x10xf32>, tensor<10xf32>) outs(%empty : tensor<8x10xf32>)
      attrs = {device.scope = #device} {
  ^bb0(%value: f32, %b: f32, %unused: f32):
    %sum = arith.addf %value, %b : f32
    linalg.yield %sum : f32
  } -> tensor<8x10xf32>

  %probabilities = linalg.softmax dimension(1)
      ins(%logits : tensor<8x10xf32>) outs(%empty : tensor<8x10xf32>) -> tensor<8x10xf32>
  return %probabilities : tensor<8x10xf32>
}
