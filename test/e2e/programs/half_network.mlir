// f16 throughout: a product, bias, tanh-based gelu and a row sum accumulated in f32.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x8xf16>, %w: tensor<8x8xf16>, %b: tensor<8xf16>) -> (tensor<?x8xf16>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero16 = arith.constant 0.0 : f16
  %zero32 = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf16>
  %empty = tensor.empty(%n) : tensor<?x8xf16>
  %init = linalg.fill ins(%zero16 : f16) outs(%empty : tensor<?x8xf16>) -> tensor<?x8xf16>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<?x8xf16>, tensor<8x8xf16>)
                                           outs(%init : tensor<?x8xf16>) -> tensor<?x8xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%0, %b : tensor<?x8xf16>, tensor<8xf16>) outs(%empty : tensor<?x8xf16>) attrs = {device.scope = #dev} {
  ^bb0(%a: f16, %bias: f16, %out: f16):
    %half = arith.constant 0.5 : f16
    %one = arith.constant 1.0 : f16
    %slope = arith.constant 0.85 : f16
    %2 = arith.addf %a, %bias : f16
    %3 = arith.mulf %2, %slope : f16
    %4 = math.tanh %3 : f16
    %5 = arith.addf %4, %one : f16
    %6 = arith.mulf %5, %half : f16
    %7 = arith.mulf %6, %2 : f16
    linalg.yield %7 : f16
  } -> tensor<?x8xf16>
  %rows = tensor.empty(%n) : tensor<?xf32>
  %rows0 = linalg.fill ins(%zero32 : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %8 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
    ins(%1 : tensor<?x8xf16>) outs(%rows0 : tensor<?xf32>) {
  ^bb0(%a: f16, %acc: f32):
    %9 = arith.extf %a : f16 to f32
    %10 = arith.addf %acc, %9 : f32
    linalg.yield %10 : f32
  } -> tensor<?xf32>
  return %1, %8 : tensor<?x8xf16>, tensor<?xf32>
}
