// RUN: devscope lower %s --stage schedule | filecheck %s

// A line for every operation of the host, in the order of the source: the kernel and the row that it is made with, or
// loops. The processor is said here so that the rows are the same on every machine.
// What has no place in a file comes last, by its name.

// CHECK:      {{.*}}schedule.mlir:18:8: linalg.contract, b 1, m 64, n 512, k 784, f32: contraction with rows [[#]], columns
// CHECK-SAME:   (avx512.toml, contraction [[#]])
// CHECK:      {{.*}}schedule.mlir:19:8: linalg.generic, b 1, m 64, n 512, f32: in the kernel of {{.*}}schedule.mlir:18:8
// CHECK:      {{.*}}schedule.mlir:31:8: linalg.contract, b 1, m 1, n 32, k 512, f32: narrow with columns
// CHECK:      {{.*}}schedule.mlir:35:8: linalg.contract, b 1, m ?, n ?, k ?, f64: contraction with rows
func.func @main(%x: tensor<64x784xf32>, %w: tensor<784x512xf32>, %b: tensor<512xf32>, %v: tensor<?x?xf64>)
    -> (tensor<64x512xf32>, tensor<1x32xf32>, tensor<?x?xf64>)
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x512xf32>) -> tensor<64x512xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x784xf32>, tensor<784x512xf32>) outs(%f : tensor<64x512xf32>) -> tensor<64x512xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%p, %b : tensor<64x512xf32>, tensor<512xf32>) outs(%empty : tensor<64x512xf32>) {
    ^bb0(%s: f32, %c: f32, %o: f32):
      %y = arith.addf %s, %c : f32
      linalg.yield %y : f32
  } -> tensor<64x512xf32>
  %row = tensor.extract_slice %x[0, 0] [1, 512] [1, 1] : tensor<64x784xf32> to tensor<1x512xf32>
  %few = tensor.extract_slice %w[0, 0] [512, 32] [1, 1] : tensor<784x512xf32> to tensor<512x32xf32>
  %e1 = tensor.empty() : tensor<1x32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x32xf32>) -> tensor<1x32xf32>
  %q = linalg.matmul ins(%row, %few : tensor<1x512xf32>, tensor<512x32xf32>) outs(%f1 : tensor<1x32xf32>) -> tensor<1x32xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %v, %c0 : tensor<?x?xf64>
  %e2 = tensor.empty(%n, %n) : tensor<?x?xf64>
  %d = linalg.matmul ins(%v, %v : tensor<?x?xf64>, tensor<?x?xf64>) outs(%e2 : tensor<?x?xf64>) -> tensor<?x?xf64>
  %t = linalg.reduce ins(%d : tensor<?x?xf64>) outs(%d : tensor<?x?xf64>) dimensions = []
    (%a: f64, %o: f64) { %s = arith.mulf %a, %a : f64 linalg.yield %s : f64 } loc("squares")
  return %r, %q, %t : tensor<64x512xf32>, tensor<1x32xf32>, tensor<?x?xf64>
}

// Few filters whose pixels stand side by side are computed one after the other; channels that stand so are not.

// CHECK:      linalg.conv_2d_nchw_fchw, pixels 900, filters 3, sums 144, f32: planes with lanes
// CHECK:      linalg.conv_2d_nhwc_hwcf, pixels 900, filters 3, sums 144, f32: convolution with rows
func.func @few(%x: tensor<1x16x32x32xf32>, %w: tensor<3x16x3x3xf32>, %y: tensor<1x3x30x30xf32>,
               %u: tensor<1x32x32x16xf32>, %v: tensor<3x3x16x3xf32>, %z: tensor<1x30x30x3xf32>)
    -> (tensor<1x3x30x30xf32>, tensor<1x30x30x3xf32>)
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %0 = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x16x32x32xf32>, tensor<3x16x3x3xf32>) outs(%y : tensor<1x3x30x30xf32>) -> tensor<1x3x30x30xf32>
  %1 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%u, %v : tensor<1x32x32x16xf32>, tensor<3x3x16x3xf32>) outs(%z : tensor<1x30x30x3xf32>) -> tensor<1x30x30x3xf32>
  return %0, %1 : tensor<1x3x30x30xf32>, tensor<1x30x30x3xf32>
}

// One matrix for a batch of others, as of filters of one pixel for images: what follows is done in its kernel. Rows
// of blocks that fill 32 x 784 better than those of rows behind them come first.

// CHECK:      linalg.contract, b 4, m 32, n 784, k 192, f32: contraction with rows 8, columns 16,
// CHECK-NEXT: linalg.generic, b 4, m 32, n 784, f32: in the kernel of
// CHECK-NEXT: linalg.contract, b 1, m 384, n 768, k 192, f32: contraction with rows 4, columns 64,
func.func @shared(%w: tensor<32x192xf32>, %x: tensor<4x192x784xf32>, %u: tensor<384x192xf32>, %v: tensor<192x768xf32>)
    -> (tensor<4x32x784xf32>, tensor<384x768xf32>)
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x32x784xf32>
  %f = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x32x784xf32>) -> tensor<4x32x784xf32>
  %p = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                                        affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%w, %x : tensor<32x192xf32>, tensor<4x192x784xf32>) outs(%f : tensor<4x32x784xf32>) -> tensor<4x32x784xf32>
  %r = linalg.exp ins(%p : tensor<4x32x784xf32>) outs(%empty : tensor<4x32x784xf32>) -> tensor<4x32x784xf32>
  %e = tensor.empty() : tensor<384x768xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<384x768xf32>) -> tensor<384x768xf32>
  %q = linalg.matmul ins(%u, %v : tensor<384x192xf32>, tensor<192x768xf32>) outs(%g : tensor<384x768xf32>) -> tensor<384x768xf32>
  return %r, %q : tensor<4x32x784xf32>, tensor<384x768xf32>
}

// CHECK:      squares: linalg.reduce, ? x ?, f64: loops
