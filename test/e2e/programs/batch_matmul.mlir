// A batch of matrix products, plain and with the second operand transposed by its map.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x4x5xf32>, %b: tensor<?x5x3xf32>, %bt: tensor<?x3x5xf32>)
    -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x4x5xf32>
  %empty = tensor.empty(%n) : tensor<?x4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  %0 = linalg.batch_matmul ins(%a, %b : tensor<?x4x5xf32>, tensor<?x5x3xf32>)
                           outs(%init : tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  %1 = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
                     affine_map<(b, m, n, k) -> (b, m, n)>]
    {device.scope = #dev}
    ins(%a, %bt : tensor<?x4x5xf32>, tensor<?x3x5xf32>) outs(%init : tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  return %0, %1 : tensor<?x4x3xf32>, tensor<?x4x3xf32>
}
