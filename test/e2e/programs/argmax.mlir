// A reduction with two results: the maximum of each row and its first position (linalg.index, index and i64).
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xindex>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %lowest = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %values = tensor.empty(%n) : tensor<?xf32>
  %places = tensor.empty(%n) : tensor<?xindex>
  %values0 = linalg.fill ins(%lowest : f32) outs(%values : tensor<?xf32>) -> tensor<?xf32>
  %places0 = linalg.fill ins(%c0 : index) outs(%places : tensor<?xindex>) -> tensor<?xindex>
  %0:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x?xf32>) outs(%values0, %places0 : tensor<?xf32>, tensor<?xindex>)
    attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %best: f32, %where: index):
    %j = linalg.index 1 : index
    %better = arith.cmpf ogt, %a, %best : f32
    %1 = arith.select %better, %a, %best : f32
    %2 = arith.select %better, %j, %where : index
    linalg.yield %1, %2 : f32, index
  } -> (tensor<?xf32>, tensor<?xindex>)
  %3 = arith.index_cast %0#1 : tensor<?xindex> to tensor<?xi64>
  return %0#0, %0#1, %3 : tensor<?xf32>, tensor<?xindex>, tensor<?xi64>
}
