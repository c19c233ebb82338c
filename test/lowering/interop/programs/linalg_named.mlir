// Named operations hide a body that upstream derives.
func.func @mm(%a: tensor<3x7xf32>, %b: tensor<7x2xf32>, %c: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<3x2xf32>) -> tensor<3x2xf32>
  %product = linalg.matmul ins(%a, %b : tensor<3x7xf32>, tensor<7x2xf32>) outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  %sum = linalg.add ins(%product, %c : tensor<3x2xf32>, tensor<3x2xf32>) outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %sum : tensor<3x2xf32>
}
