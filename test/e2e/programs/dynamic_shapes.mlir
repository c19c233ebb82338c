// Result shapes that are computed from argument shapes: an outer product, a doubled length, a reshaped view.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xi64>, index, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?x?xf32>)
    attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %double = arith.muli %m, %c2 : index
  %long = tensor.empty(%double) : tensor<?xi64>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%long : tensor<?xi64>) attrs = {device.scope = #dev} {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %odd = arith.addi %i, %m : index
    %value = arith.index_cast %odd : index to i64
    linalg.yield %value : i64
  } -> tensor<?xi64>
  %length = tensor.dim %2, %c0 : tensor<?xi64>
  %total = arith.addi %length, %n : index
  %flat = tensor.collapse_shape %0 [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %0, %2, %total, %flat : tensor<?x?xf32>, tensor<?xi64>, index, tensor<?xf32>
}
