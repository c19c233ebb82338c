// Arguments as outputs of linalg ops: results start from them, and the caller's arrays must stay as they are.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x4xf32>, %b: tensor<4x3xf32>, %c: tensor<?x3xf32>)
    -> (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>) {
  %0 = linalg.matmul {device.scope = #dev} ins(%a, %b : tensor<?x4xf32>, tensor<4x3xf32>)
                                           outs(%c : tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x3xf32>) outs(%0 : tensor<?x3xf32>) -> tensor<?x3xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<?x3xf32>) outs(%c : tensor<?x3xf32>) attrs = {device.scope = #dev} {
  ^bb0(%x: f32, %out: f32):
    %3 = arith.mulf %x, %out : f32
    linalg.yield %3 : f32
  } -> tensor<?x3xf32>
  return %0, %1, %2 : tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>
}
