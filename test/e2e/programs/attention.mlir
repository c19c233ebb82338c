// A transformer block: two heads of masked self-attention, residual connection, normalisation, feed-forward.
// Projections and scores run on the device, the rest by default.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @project(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>)
                                           outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func private @heads(%x: tensor<?x8xf32>) -> tensor<2x?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
  %empty = tensor.empty(%n) : tensor<2x?x4xf32>
  %1 = linalg.transpose ins(%0 : tensor<?x2x4xf32>) outs(%empty : tensor<2x?x4xf32>) permutation = [1, 0, 2]
  return %1 : tensor<2x?x4xf32>
}
func.func @main(%x: tensor<?x8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x8xf32>, %wv: tensor<8x8xf32>,
                %wo: tensor<8x8xf32>, %w1: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %q = call @project(%x, %wq) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %k = call @project(%x, %wk) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %v = call @project(%x, %wv) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %qh = call @heads(%q) : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %kh = call @heads(%k) : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %vh = call @heads(%v) : (tensor<?x8xf32>) -> tensor<2x?x4xf32>
  %scores_empty = tensor.empty(%n, %n) : tensor<2x?x?xf32>
  %scores_init = linalg.fill ins(%zero : f32) outs(%scores_empty : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %scores = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
                     affine_map<(b, m, n, k) -> (b, m, n)>]
    {device.scope = #dev}
    ins(%qh, %kh : tensor<2x?x4xf32>, tensor<2x?x4xf32>) outs(%scores_init : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %masked = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
                            iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scores : tensor<2x?x?xf32>) outs(%scores_empty : tensor<2x?x?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%score: f32, %out: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %past = arith.cmpi ule, %j, %i : index
    %half = arith.constant 0.5 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scaled = arith.mulf %score, %half : f32
    %0 = arith.select %past, %scaled, %lowest : f32
    linalg.yield %0 : f32
  } -> tensor<2x?x?xf32>
  %weights = linalg.softmax {device.scope = #dev} dimension(2) ins(%masked : tensor<2x?x?xf32>)
    outs(%scores_empty : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %mixed_empty = tensor.empty(%n) : tensor<2x?x4xf32>
  %mixed_init = linalg.fill ins(%zero : f32) outs(%mixed_empty : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %mixed = linalg.batch_matmul ins(%weights, %vh : tensor<2x?x?xf32>, tensor<2x?x4xf32>)
                               outs(%mixed_init : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %joined_empty = tensor.empty(%n) : tensor<?x2x4xf32>
  %joined = linalg.transpose ins(%mixed : tensor<2x?x4xf32>) outs(%joined_empty : tensor<?x2x4xf32>) permutation = [1, 0, 2]
  %flat = tensor.collapse_shape %joined [[0], [1, 2]] : tensor<?x2x4xf32> into tensor<?x8xf32>
  %attended = call @project(%flat, %wo) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %residual = arith.addf %attended, %x : tensor<?x8xf32>
  // Root mean square normalisation.
  %rows = tensor.empty(%n) : tensor<?xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                             iterator_types = ["parallel", "reduction"]}
    ins(%residual : tensor<?x8xf32>) outs(%rows0 : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = math.fma %a, %a, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %normal = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                             affine_map<(i, j) -> (i, j)>],
                            iterator_types = ["parallel", "parallel"]}
    ins(%residual, %squares : tensor<?x8xf32>, tensor<?xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %square: f32, %out: f32):
    %eighth = arith.constant 0.125 : f32
    %epsilon = arith.constant 1.0e-5 : f32
    %mean = math.fma %square, %eighth, %epsilon : f32
    %scale = math.rsqrt %mean : f32
    %0 = arith.mulf %a, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<?x8xf32>
  %hidden = call @project(%normal, %w1) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %active = math.tanh %hidden {device.scope = #dev} : tensor<?x8xf32>
  %result = arith.addf %active, %residual : tensor<?x8xf32>
  return %result : tensor<?x8xf32>
}
