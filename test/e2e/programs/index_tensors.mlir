// Tensors of index and i64 elements: positions computed on the device, mixed with scalars from the host.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xindex>, %step: index, %offset: i64) -> (tensor<?x?xindex>, tensor<?x?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xindex>
  %n = tensor.dim %x, %c1 : tensor<?x?xindex>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x?xindex>) outs(%x : tensor<?x?xindex>) attrs = {device.scope = #dev} {
  ^bb0(%a: index, %out: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.muli %i, %n : index
    %place = arith.addi %row, %j : index
    %scaled = arith.muli %place, %step : index
    %1 = arith.addi %a, %scaled : index
    linalg.yield %1 : index
  } -> tensor<?x?xindex>
  %wide = arith.index_cast %0 : tensor<?x?xindex> to tensor<?x?xi64>
  %offsets = tensor.splat %offset[%m, %n] : tensor<?x?xi64>
  %2 = arith.subi %wide, %offsets {device.scope = #dev} : tensor<?x?xi64>
  return %0, %2 : tensor<?x?xindex>, tensor<?x?xi64>
}
