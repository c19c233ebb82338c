// linalg.matmul whose maps read the first, the second or both operands transposed; f64.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<?x6xf64>, %at: tensor<6x?xf64>, %b: tensor<6x5xf64>, %bt: tensor<5x6xf64>)
    -> (tensor<?x5xf64>, tensor<?x5xf64>, tensor<?x5xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %m = tensor.dim %a, %c0 : tensor<?x6xf64>
  %empty = tensor.empty(%m) : tensor<?x5xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<?x5xf64>) -> tensor<?x5xf64>
  %0 = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, #c]
    {device.scope = #dev}
    ins(%a, %bt : tensor<?x6xf64>, tensor<5x6xf64>) outs(%init : tensor<?x5xf64>) -> tensor<?x5xf64>
  %1 = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, #c]
    ins(%at, %b : tensor<6x?xf64>, tensor<6x5xf64>) outs(%init : tensor<?x5xf64>) -> tensor<?x5xf64>
  %2 = linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, #c]
    {device.scope = #dev}
    ins(%at, %bt : tensor<6x?xf64>, tensor<5x6xf64>) outs(%init : tensor<?x5xf64>) -> tensor<?x5xf64>
  return %0, %1, %2 : tensor<?x5xf64>, tensor<?x5xf64>, tensor<?x5xf64>
}
