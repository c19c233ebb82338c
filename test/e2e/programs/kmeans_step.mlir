// One step of k-means: distances, argmin, sums per cluster through a one-hot contraction, a division.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%points: tensor<?x2xf32>, %centres: tensor<3x2xf32>) -> (tensor<?xi32>, tensor<3x2xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %highest = arith.constant 0x7F800000 : f32
  %none = arith.constant 0 : i32
  %n = tensor.dim %points, %c0 : tensor<?x2xf32>
  %distances_empty = tensor.empty(%n) : tensor<?x3xf32>
  %distances_init = linalg.fill ins(%zero : f32) outs(%distances_empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %distances = linalg.generic {
    indexing_maps = [affine_map<(i, k, d) -> (i, d)>, affine_map<(i, k, d) -> (k, d)>, affine_map<(i, k, d) -> (i, k)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%points, %centres : tensor<?x2xf32>, tensor<3x2xf32>) outs(%distances_init : tensor<?x3xf32>)
    attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %c: f32, %acc: f32):
    %0 = arith.subf %p, %c : f32
    %1 = math.fma %0, %0, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<?x3xf32>
  %best_empty = tensor.empty(%n) : tensor<?xf32>
  %best_init = linalg.fill ins(%highest : f32) outs(%best_empty : tensor<?xf32>) -> tensor<?xf32>
  %ids_empty = tensor.empty(%n) : tensor<?xi32>
  %ids_init = linalg.fill ins(%none : i32) outs(%ids_empty : tensor<?xi32>) -> tensor<?xi32>
  %nearest:2 = linalg.generic {
    indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%distances : tensor<?x3xf32>) outs(%best_init, %ids_init : tensor<?xf32>, tensor<?xi32>)
    attrs = {device.scope = #dev} {
  ^bb0(%distance: f32, %best: f32, %id: i32):
    %k = linalg.index 1 : index
    %number = arith.index_cast %k : index to i32
    %closer = arith.cmpf olt, %distance, %best : f32
    %0 = arith.select %closer, %distance, %best : f32
    %1 = arith.select %closer, %number, %id : i32
    linalg.yield %0, %1 : f32, i32
  } -> (tensor<?xf32>, tensor<?xi32>)
  %hot_empty = tensor.empty(%n) : tensor<3x?xf32>
  %hot = linalg.generic {indexing_maps = [affine_map<(k, i) -> (i)>, affine_map<(k, i) -> (k, i)>],
                         iterator_types = ["parallel", "parallel"]}
    ins(%nearest#1 : tensor<?xi32>) outs(%hot_empty : tensor<3x?xf32>) {
  ^bb0(%id: i32, %out: f32):
    %k = linalg.index 0 : index
    %number = arith.index_cast %k : index to i32
    %mine = arith.cmpi eq, %id, %number : i32
    %0 = arith.select %mine, %one, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<3x?xf32>
  %sums_init = arith.constant dense<0.0> : tensor<3x2xf32>
  %sums = linalg.matmul {device.scope = #dev} ins(%hot, %points : tensor<3x?xf32>, tensor<?x2xf32>)
                                              outs(%sums_init : tensor<3x2xf32>) -> tensor<3x2xf32>
  %counts_init = arith.constant dense<0.0> : tensor<3xf32>
  %counts = linalg.reduce {arith.addf} ins(%hot : tensor<3x?xf32>) outs(%counts_init : tensor<3xf32>) dimensions = [1]
  %means_empty = tensor.empty() : tensor<3x2xf32>
  %means = linalg.generic {
    indexing_maps = [affine_map<(k, d) -> (k, d)>, affine_map<(k, d) -> (k)>, affine_map<(k, d) -> (k, d)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%sums, %counts : tensor<3x2xf32>, tensor<3xf32>) outs(%means_empty : tensor<3x2xf32>) {
  ^bb0(%sum: f32, %count: f32, %out: f32):
    %0 = arith.maximumf %count, %one : f32
    %1 = arith.divf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<3x2xf32>
  return %nearest#1, %means : tensor<?xi32>, tensor<3x2xf32>
}
