// A contraction that no named op covers: sum over two of five dimensions, result transposed.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<3x?x4x5xf32>, %b: tensor<5x2x4xf32>) -> tensor<2x3x?xf32> {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c1 : tensor<3x?x4x5xf32>
  %empty = tensor.empty(%n) : tensor<2x3x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  %0 = linalg.contract
    indexing_maps = [affine_map<(i, j, k, p, q) -> (i, j, p, q)>, affine_map<(i, j, k, p, q) -> (q, k, p)>,
                     affine_map<(i, j, k, p, q) -> (k, i, j)>]
    {device.scope = #dev}
    ins(%a, %b : tensor<3x?x4x5xf32>, tensor<5x2x4xf32>) outs(%init : tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}
