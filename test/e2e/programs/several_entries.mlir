// Several public functions: each is an entry; one calls another, one takes nothing, one gives nothing back.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @double(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x {device.scope = #dev} : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @quadruple(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @double(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = call @double(%0) : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @table() -> tensor<2x3xi32> {
  %0 = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %empty = tensor.empty() : tensor<2x3xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<2x3xi32>) outs(%empty : tensor<2x3xi32>) attrs = {device.scope = #dev} {
  ^bb0(%a: i32, %out: i32):
    %j = linalg.index 1 : index
    %column = arith.index_cast %j : index to i32
    %2 = arith.muli %a, %column : i32
    linalg.yield %2 : i32
  } -> tensor<2x3xi32>
  return %1 : tensor<2x3xi32>
}
func.func @nothing(%x: tensor<?xf32>) {
  return
}
