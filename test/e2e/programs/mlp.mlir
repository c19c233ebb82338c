// A multi-layer perceptron as an importer writes it: weights as arguments, one private function per layer,
// the first two layers on the device, the classifier's softmax wherever the default says.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @dense(%x: tensor<?x12xf32>, %w: tensor<12x12xf32>, %b: tensor<12xf32>) -> tensor<?x12xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x12xf32>
  %empty = tensor.empty(%n) : tensor<?x12xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x12xf32>) -> tensor<?x12xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x12xf32>, tensor<12x12xf32>)
                     outs(%init : tensor<?x12xf32>) -> tensor<?x12xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%0, %b : tensor<?x12xf32>, tensor<12xf32>) outs(%empty : tensor<?x12xf32>) {
  ^bb0(%a: f32, %bias: f32, %out: f32):
    %2 = arith.addf %a, %bias : f32
    %3 = arith.maximumf %2, %zero : f32
    linalg.yield %3 : f32
  } -> tensor<?x12xf32>
  return %1 : tensor<?x12xf32>
}
func.func @main(%x: tensor<?x12xf32>, %w0: tensor<12x12xf32>, %b0: tensor<12xf32>,
                %w1: tensor<12x12xf32>, %b1: tensor<12xf32>, %w2: tensor<12x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x12xf32>
  %h0 = call @dense(%x, %w0, %b0) : (tensor<?x12xf32>, tensor<12x12xf32>, tensor<12xf32>) -> tensor<?x12xf32>
  %0 = "device.on_device"(%h0) {scope = #dev, constrain_body = true, constrain_result = false}
    : (tensor<?x12xf32>) -> tensor<?x12xf32>
  %h1 = call @dense(%0, %w1, %b1) : (tensor<?x12xf32>, tensor<12x12xf32>, tensor<12xf32>) -> tensor<?x12xf32>
  %1 = "device.on_device"(%h1) {scope = #dev, constrain_body = true, constrain_result = false}
    : (tensor<?x12xf32>) -> tensor<?x12xf32>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %logits = linalg.matmul ins(%1, %w2 : tensor<?x12xf32>, tensor<12x4xf32>)
                          outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  %result = linalg.softmax dimension(1) ins(%logits : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %result : tensor<?x4xf32>
}
