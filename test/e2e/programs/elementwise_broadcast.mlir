// Broadcasts of a row, a column and a scalar in one generic; named broadcast ops of rank 1 to 3.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>
#scalar = affine_map<(i, j) -> ()>
func.func @main(%x: tensor<?x?xf32>, %r: tensor<?xf32>, %c: tensor<?xf32>, %s: tensor<f32>, %factor: f32)
    -> (tensor<?x?xf32>, tensor<?x2x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = linalg.generic {indexing_maps = [#full, #row, #column, #scalar, #full],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x, %r, %c, %s : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<f32>)
    outs(%empty : tensor<?x?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32, %d: f32, %e: f32, %out: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %d : f32
    %3 = arith.subf %2, %e : f32
    %4 = arith.mulf %3, %factor : f32
    linalg.yield %4 : f32
  } -> tensor<?x?xf32>
  %wide = tensor.empty(%m, %n) : tensor<?x2x?xf32>
  %5 = linalg.broadcast ins(%0 : tensor<?x?xf32>) outs(%wide : tensor<?x2x?xf32>) dimensions = [1]
  return %0, %5 : tensor<?x?xf32>, tensor<?x2x?xf32>
}
