// Layer normalisation with scale and shift: two reductions per row and a broadcast of their results.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<?x12xf32>, %scale: tensor<12xf32>, %shift: tensor<12xf32>) -> tensor<?x12xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %width = arith.constant 12.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x12xf32>
  %rows = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x12xf32>) outs(%init : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %acc, %a : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %variance = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %sum : tensor<?x12xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %total: f32, %acc: f32):
    %mean = arith.divf %total, %width : f32
    %centred = arith.subf %a, %mean : f32
    %square = arith.mulf %centred, %centred : f32
    %0 = arith.addf %acc, %square : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?x12xf32>
  %result = linalg.generic {indexing_maps = [#full, #row, #row, #column, #column, #full],
                            iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum, %variance, %scale, %shift
        : tensor<?x12xf32>, tensor<?xf32>, tensor<?xf32>, tensor<12xf32>, tensor<12xf32>)
    outs(%empty : tensor<?x12xf32>) {
  ^bb0(%a: f32, %total: f32, %squares: f32, %gamma: f32, %beta: f32, %out: f32):
    %mean = arith.divf %total, %width : f32
    %centred = arith.subf %a, %mean : f32
    %mean_square = arith.divf %squares, %width : f32
    %stable = arith.addf %mean_square, %epsilon : f32
    %inverse = math.rsqrt %stable : f32
    %0 = arith.mulf %centred, %inverse : f32
    %1 = math.fma %0, %gamma, %beta : f32
    linalg.yield %1 : f32
  } -> tensor<?x12xf32>
  return %result : tensor<?x12xf32>
}
