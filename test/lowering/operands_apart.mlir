// RUN: devscope lower %s --stage schedule | filecheck %s

// A layer whose input is computed elementwise, in tensors of another shape than the layer's: two contractions, the
// elementwise operations in the kernel of the first or by themselves, none in the loops of a contraction. Both layers
// begin with the same zeros, as frontends write them. The transposes in front of the product of batches are in its
// layouts.

// CHECK:      :23:8: linalg.{{.*}}, b 1, m 64, n 256, k 128, f32: contraction with
// CHECK-NEXT: :32:8: linalg.{{.*}}, b 1, m 64, n 256, f32: in the kernel of {{.*}}:23:8
// CHECK-NEXT: :34:8: linalg.{{.*}}, b 1, m 64, n 256, k 256, f32: contraction with
// CHECK-NEXT: :35:8: linalg.{{.*}}, 4 x 16 x 256, f32: loops
// CHECK-NEXT: :42:9: linalg.{{.*}}, b 8, m 16, n 16, k 32, f32: contraction with
#row = affine_map<(i, j, k) -> (k)>
#all = affine_map<(i, j, k) -> (i, j, k)>
func.func @main(%x: tensor<4x16x128xf32>, %v: tensor<128x256xf32>, %w: tensor<256x256xf32>, %b: tensor<256xf32>,
                %s: tensor<4x16x256xf32>, %k: tensor<32x16x32xf32>) -> (tensor<4x16x256xf32>, tensor<32x16x16xf32>)
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %whole = tensor.empty() : tensor<4x16x256xf32>
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x16x128xf32> into tensor<64x128xf32>
  %1 = linalg.matmul ins(%0, %v : tensor<64x128xf32>, tensor<128x256xf32>) outs(%z : tensor<64x256xf32>) -> tensor<64x256xf32>
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [4, 16, 256] : tensor<64x256xf32> into tensor<4x16x256xf32>
  %3 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%2, %b : tensor<4x16x256xf32>, tensor<256xf32>) outs(%whole : tensor<4x16x256xf32>) {
  ^bb0(%in: f32, %c: f32, %o: f32):
    %y = arith.addf %in, %c : f32
    linalg.yield %y : f32
  } -> tensor<4x16x256xf32>
  %4 = math.tanh %3 : tensor<4x16x256xf32>
  %5 = arith.mulf %4, %s : tensor<4x16x256xf32>
  %6 = tensor.collapse_shape %5 [[0, 1], [2]] : tensor<4x16x256xf32> into tensor<64x256xf32>
  %7 = linalg.matmul ins(%6, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%z : tensor<64x256xf32>) -> tensor<64x256xf32>
  %8 = arith.mulf %7, %7 : tensor<64x256xf32>
  %9 = tensor.expand_shape %8 [[0, 1], [2, 3]] output_shape [4, 16, 8, 32] : tensor<64x256xf32> into tensor<4x16x8x32xf32>
  %heads = tensor.empty() : tensor<4x8x16x32xf32>
  %10 = linalg.transpose ins(%9 : tensor<4x16x8x32xf32>) outs(%heads : tensor<4x8x16x32xf32>) permutation = [0, 2, 1, 3]
  %11 = tensor.collapse_shape %10 [[0, 1], [2], [3]] : tensor<4x8x16x32xf32> into tensor<32x16x32xf32>
  %products = tensor.empty() : tensor<32x16x16xf32>
  %12 = linalg.fill ins(%zero : f32) outs(%products : tensor<32x16x16xf32>) -> tensor<32x16x16xf32>
  %13 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
      affine_map<(b, m, n, k) -> (b, m, n)>] ins(%11, %k : tensor<32x16x32xf32>, tensor<32x16x32xf32>)
    outs(%12 : tensor<32x16x16xf32>) -> tensor<32x16x16xf32>
  %14 = tensor.expand_shape %7 [[0, 1], [2]] output_shape [4, 16, 256] : tensor<64x256xf32> into tensor<4x16x256xf32>
  return %14, %13 : tensor<4x16x256xf32>, tensor<32x16x16xf32>
}

// Heads side by side again, in front of a layer: one contraction with sums over 256, of what was transposed before, not
// one for each head.

// CHECK:      linalg.generic, 4 x 16 x 8 x 32, f32: loops
// CHECK:      linalg.{{.*}}, b 1, m 64, n 256, k 256, f32: contraction with
func.func @heads(%h: tensor<32x16x32xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = math.absf %h : tensor<32x16x32xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2], [3]] output_shape [4, 8, 16, 32] : tensor<32x16x32xf32> into tensor<4x8x16x32xf32>
  %split = tensor.empty() : tensor<4x16x8x32xf32>
  %2 = linalg.transpose ins(%1 : tensor<4x8x16x32xf32>) outs(%split : tensor<4x16x8x32xf32>) permutation = [0, 2, 1, 3]
  %3 = tensor.collapse_shape %2 [[0, 1], [2, 3]] : tensor<4x16x8x32xf32> into tensor<64x256xf32>
  %empty = tensor.empty() : tensor<64x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %4 = linalg.matmul ins(%3, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%z : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %4 : tensor<64x256xf32>
}
