// Transposed reads through maps and through named ops, of rank 2 and 3, chained so that they could fuse.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<2x3x?xf64>)
    -> (tensor<?x?xf32>, tensor<?x2x3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%empty : tensor<?x?xf32>)
    attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %flipped = tensor.empty(%n, %m) : tensor<?x?xf32>
  %2 = linalg.transpose ins(%0 : tensor<?x?xf32>) outs(%flipped : tensor<?x?xf32>) permutation = [1, 0]
  %3 = arith.mulf %2, %y : tensor<?x?xf32>
  %p = tensor.dim %z, %c2 : tensor<2x3x?xf64>
  %cube = tensor.empty(%p) : tensor<?x2x3xf64>
  %4 = linalg.transpose ins(%z : tensor<2x3x?xf64>) outs(%cube : tensor<?x2x3xf64>) permutation = [2, 0, 1]
    {device.scope = #dev}
  return %3, %4 : tensor<?x?xf32>, tensor<?x2x3xf64>
}
