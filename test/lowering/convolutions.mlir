// RUN: devscope lower %s --stage host-buffers | filecheck %s
// RUN: devscope lower %s --stage host-llvm | filecheck %s --check-prefix=LLVM

// Padding is not made: the kernel reads the argument, and takes what follows along. Without filters, as for pooling
// and a convolution of each channel by itself, windows are computed where they are.

// CHECK-LABEL: func.func @padded
// CHECK-NOT:     memref.copy
// CHECK-NOT:     linalg.
// CHECK:         call @devscope_convolution_0
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @padded(%x: tensor<2x8x8x16xf32>, %w: tensor<3x3x16x32xf32>, %b: tensor<32xf32>) -> tensor<2x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x8x16xf32> to tensor<2x10x10x16xf32>
  %e = tensor.empty() : tensor<2x8x8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8x32xf32>) -> tensor<2x8x8x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<2x10x10x16xf32>, tensor<3x3x16x32xf32>) outs(%f : tensor<2x8x8x32xf32>)
    -> tensor<2x8x8x32xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (f)>,
                     affine_map<(n, h, w, f) -> (n, h, w, f)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%c, %b : tensor<2x8x8x32xf32>, tensor<32xf32>) outs(%e : tensor<2x8x8x32xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %s = arith.addf %u, %v : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<2x8x8x32xf32>
  return %r : tensor<2x8x8x32xf32>
}

// Lines of the result are fetched before there are sums, and filters while there are others; whole vectors of the
// result are written without masks.

// LLVM:          prefetch.p0({{.*}}, i32 1, i32 3
// LLVM:          prefetch.p0({{.*}}, i32 0, i32 2
// LLVM:          store <{{16|32}} x float>
// LLVM:          masked.store.v{{16|32}}f32

// CHECK-LABEL: func.func @pooled
// CHECK-NOT:     linalg.
// CHECK:         call @devscope_window_1
func.func @pooled(%x: tensor<2x16x16x16xf32>) -> tensor<2x8x8x16xf32> {
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x8x8x16xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %0 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %window : tensor<2x16x16x16xf32>, tensor<2x2xf32>) outs(%f : tensor<2x8x8x16xf32>)
    -> tensor<2x8x8x16xf32>
  return %0 : tensor<2x8x8x16xf32>
}

// Axes of one element, which elementwise operations lose, are no hindrance.

// CHECK-LABEL: func.func @mean
// CHECK-NOT:     linalg.
// CHECK:         call @devscope_window_2
// CHECK-NOT:     linalg.
// CHECK:         return
func.func @mean(%x: tensor<1x16x16x16xf32>) -> tensor<1x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 4.0 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %0 = linalg.pooling_nhwc_sum {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %window : tensor<1x16x16x16xf32>, tensor<2x2xf32>) outs(%f : tensor<1x8x8x16xf32>)
    -> tensor<1x8x8x16xf32>
  %1 = linalg.generic {
    indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%0 : tensor<1x8x8x16xf32>) outs(%e : tensor<1x8x8x16xf32>) {
  ^bb0(%u: f32, %o: f32):
    %s = arith.divf %u, %count : f32
    linalg.yield %s : f32
  } -> tensor<1x8x8x16xf32>
  return %1 : tensor<1x8x8x16xf32>
}


// Zeros between elements are neither made, also for an unknown batch, nor multiplied: of a transposed convolution to
// one filter, each phase is one of the image itself.

// CHECK-LABEL: func.func @to_one_filter
// CHECK-NOT:     memref<?x4x35x35xf32>
// CHECK-COUNT-4: call @devscope_window
// CHECK-NOT:     call @devscope_window
// CHECK:         return
func.func @to_one_filter(%x: tensor<?x4x16x16xf32>, %w: tensor<1x4x4x4xf32>) -> tensor<?x1x32x32xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [1, 1], pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2], rhs_dilate = [1, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x4x16x16xf32>, tensor<1x4x4x4xf32>) -> tensor<?x1x32x32xf32>
  return %y : tensor<?x1x32x32xf32>
}
