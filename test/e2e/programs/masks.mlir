// Positions as data: a triangular mask, the identity matrix, and nearest-neighbour enlargement by two.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x?xf32>) outs(%empty : tensor<?x?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %zero = arith.constant 0.0 : f32
    %lower = arith.cmpi sge, %i, %j : index
    %1 = arith.select %lower, %a, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  %square = tensor.empty(%m, %m) : tensor<?x?xi1>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    outs(%square : tensor<?x?xi1>) attrs = {device.scope = #dev} {
  ^bb0(%out: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %same = arith.cmpi eq, %i, %j : index
    linalg.yield %same : i1
  } -> tensor<?x?xi1>
  %m2 = arith.muli %m, %c2 : index
  %n2 = arith.muli %n, %c2 : index
  %large = tensor.empty(%m2, %n2) : tensor<?x?xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    outs(%large : tensor<?x?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.divui %i, %c2 : index
    %column = arith.divui %j, %c2 : index
    %value = tensor.extract %x[%row, %column] : tensor<?x?xf32>
    linalg.yield %value : f32
  } -> tensor<?x?xf32>
  return %0, %2, %3 : tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xf32>
}
