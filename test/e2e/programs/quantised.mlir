// Quantised arithmetic: f32 to i8 with rounding and clamping, an i8 product accumulated in i32, rescaled.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x6xf32>, %w: tensor<6x4xi8>, %scale: f32) -> (tensor<?x6xi8>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %none = arith.constant 0 : i32
  %bytes = tensor.empty(%n) : tensor<?x6xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x6xf32>) outs(%bytes : tensor<?x6xi8>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %out: i8):
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %0 = arith.divf %a, %scale : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.maximumf %1, %low : f32
    %3 = arith.minimumf %2, %high : f32
    %4 = arith.fptosi %3 : f32 to i8
    linalg.yield %4 : i8
  } -> tensor<?x6xi8>
  %empty = tensor.empty(%n) : tensor<?x4xi32>
  %init = linalg.fill ins(%none : i32) outs(%empty : tensor<?x4xi32>) -> tensor<?x4xi32>
  %zero_point_x = arith.constant 3 : i32
  %zero_point_w = arith.constant -2 : i32
  %product = linalg.quantized_matmul {device.scope = #dev}
    ins(%q, %w, %zero_point_x, %zero_point_w : tensor<?x6xi8>, tensor<6x4xi8>, i32, i32)
    outs(%init : tensor<?x4xi32>) -> tensor<?x4xi32>
  %real = arith.sitofp %product : tensor<?x4xi32> to tensor<?x4xf32>
  %scales = tensor.splat %scale[%n] : tensor<?x4xf32>
  %result = arith.mulf %real, %scales : tensor<?x4xf32>
  return %q, %result : tensor<?x6xi8>, tensor<?x4xf32>
}
