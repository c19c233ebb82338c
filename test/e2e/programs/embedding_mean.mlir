// Embedding lookup in a constant table, masked mean over the sequence, on two default-placed stages.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%ids: tensor<?x5xi64>, %lengths: tensor<?xi64>) -> tensor<?x3xf32> {
  %table = arith.constant dense<[[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [-2.0, 3.0, 0.125], [4.0, 0.0, -1.0],
                                 [0.1, 0.2, 0.3], [-0.4, 0.5, 0.6], [7.0, -8.0, 9.0]]> : tensor<7x3xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %ids, %c0 : tensor<?x5xi64>
  %empty = tensor.empty(%n) : tensor<?x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%ids, %lengths : tensor<?x5xi64>, tensor<?xi64>) outs(%init : tensor<?x3xf32>)
    attrs = {device.scope = #dev} {
  ^bb0(%id: i64, %length: i64, %acc: f32):
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %k64 = arith.index_cast %k : index to i64
    %row = arith.index_cast %id : i64 to index
    %value = tensor.extract %table[%row, %j] : tensor<7x3xf32>
    %inside = arith.cmpi slt, %k64, %length : i64
    %used = arith.select %inside, %value, %zero : f32
    %0 = arith.addf %acc, %used : f32
    linalg.yield %0 : f32
  } -> tensor<?x3xf32>
  %mean = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%sum, %lengths : tensor<?x3xf32>, tensor<?xi64>) outs(%empty : tensor<?x3xf32>) {
  ^bb0(%a: f32, %length: i64, %out: f32):
    %divisor = arith.sitofp %length : i64 to f32
    %0 = arith.divf %a, %divisor : f32
    linalg.yield %0 : f32
  } -> tensor<?x3xf32>
  return %mean : tensor<?x3xf32>
}
