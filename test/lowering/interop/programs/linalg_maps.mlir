// Indexing maps that change what a named operation means: transposed and broadcast operands, casts.
func.func @mm(%a: tensor<3x7xi8>, %b: tensor<2x7xi8>, %v: tensor<7xi8>, %c: tensor<3x2xi32>) -> (tensor<3x2xi32>, tensor<3x2xi32>) {
  %0 = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<3x7xi8>, tensor<2x7xi8>) outs(%c : tensor<3x2xi32>) -> tensor<3x2xi32>
  %1 = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      {cast = #linalg.type_fn<cast_unsigned>}
      ins(%v, %b : tensor<7xi8>, tensor<2x7xi8>) outs(%c : tensor<3x2xi32>) -> tensor<3x2xi32>
  return %0, %1 : tensor<3x2xi32>, tensor<3x2xi32>
}
