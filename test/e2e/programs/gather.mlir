// Rows picked by an index tensor: tensor.extract with computed positions in the body of a generic.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%table: tensor<11x4xf32>, %ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<?xi32>) outs(%empty : tensor<?x4xf32>) attrs = {device.scope = #dev} {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %j = linalg.index 1 : index
    %value = tensor.extract %table[%row, %j] : tensor<11x4xf32>
    linalg.yield %value : f32
  } -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
