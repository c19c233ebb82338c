// RUN: devscope lower %s --stage host-buffers | filecheck %s

// Transposes and broadcasts before a contraction are in the way that its kernel reads memory; a batch and rows that
// follow each other are one loop. Zeros before it and elementwise operations behind it are in the kernel, too.

// CHECK-LABEL: func.func {{.*}}main
// CHECK-NOT: linalg
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [1, 120, 64], strides: [0, 64, 1]
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [1, 50, 64], strides: [0, 64, 1]
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [1, 120, 50], strides: [0, 50, 1]
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [1, 120, 50], strides: [0, 0, 1]
// CHECK: call @devscope_contraction_{{[0-9]+}}({{.*}}) {devscope.writes = array<i64: 2, 7>}
// CHECK-NOT: linalg
// CHECK-NOT: call @devscope_contraction
// CHECK: return
func.func @main(%x: tensor<4x30x64xf32>, %w: tensor<50x64xf32>, %bias: tensor<50xf32>) -> tensor<4x30x50xf32> {
  %zero = arith.constant 0.0 : f32
  %turned = tensor.empty() : tensor<64x50xf32>
  %t = linalg.transpose ins(%w : tensor<50x64xf32>) outs(%turned : tensor<64x50xf32>) permutation = [1, 0]
  %wide = tensor.empty() : tensor<4x64x50xf32>
  %b = linalg.broadcast ins(%t : tensor<64x50xf32>) outs(%wide : tensor<4x64x50xf32>) dimensions = [0]
  %empty = tensor.empty() : tensor<4x30x50xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x30x50xf32>) -> tensor<4x30x50xf32>
  %p = linalg.batch_matmul ins(%x, %b : tensor<4x30x64xf32>, tensor<4x64x50xf32>)
    outs(%zeros : tensor<4x30x50xf32>) -> tensor<4x30x50xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>,
      affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %bias : tensor<4x30x50xf32>, tensor<50xf32>) outs(%empty : tensor<4x30x50xf32>) {
  ^bb0(%s: f32, %u: f32, %o: f32):
    %sum = arith.addf %s, %u : f32
    linalg.yield %sum : f32
  } -> tensor<4x30x50xf32>
  return %r : tensor<4x30x50xf32>
}

// Small ones stay loops.
// CHECK-LABEL: func.func {{.*}}small
// CHECK-NOT: call @devscope_contraction
// CHECK: return
func.func @small(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// Loops that are not one in memory are around the call.
// CHECK-LABEL: func.func {{.*}}loops
// CHECK: scf.for
// CHECK: call @devscope_contraction
// CHECK: return
func.func @loops(%a: tensor<9x40x8xf32>, %b: tensor<9x8x50xf32>, %c: tensor<40x50xf32>) -> tensor<40x50xf32> {
  %r = linalg.contract indexing_maps = [affine_map<(m, n, k, l) -> (l, m, k)>, affine_map<(m, n, k, l) -> (l, k, n)>,
      affine_map<(m, n, k, l) -> (m, n)>]
    ins(%a, %b : tensor<9x40x8xf32>, tensor<9x8x50xf32>) outs(%c : tensor<40x50xf32>) -> tensor<40x50xf32>
  return %r : tensor<40x50xf32>
}

// Equal zeros are not one for two contractions: nothing is filled or copied.
// CHECK-LABEL: func.func {{.*}}layers
// CHECK-NOT: fill
// CHECK-NOT: copy
// CHECK: call @devscope_contraction
// CHECK-NOT: fill
// CHECK-NOT: copy
// CHECK: call @devscope_contraction
// CHECK-NOT: linalg
// CHECK: return
func.func @layers(%x: tensor<40x40xf32>, %v: tensor<40x40xf32>, %w: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x40xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x40xf32>) -> tensor<40x40xf32>
  %p = linalg.matmul ins(%x, %v : tensor<40x40xf32>, tensor<40x40xf32>) outs(%zeros : tensor<40x40xf32>) -> tensor<40x40xf32>
  %y = linalg.exp ins(%p : tensor<40x40xf32>) outs(%empty : tensor<40x40xf32>) -> tensor<40x40xf32>
  %q = linalg.matmul ins(%y, %w : tensor<40x40xf32>, tensor<40x40xf32>) outs(%zeros : tensor<40x40xf32>) -> tensor<40x40xf32>
  return %q : tensor<40x40xf32>
}

// One column or one row, where nobody knows how many there are, has a kernel that packs nothing. Few have one, too.
// CHECK-LABEL: func.func {{.*}}unknown
// CHECK: scf.if
// CHECK-NEXT: memref.extract
// CHECK-NOT: memref.alloc
// CHECK: call @devscope_dots
// CHECK: else
// CHECK: scf.if
// CHECK: call @devscope_narrow
// CHECK: else
// CHECK: scf.if
// CHECK: call @devscope_dots
// CHECK: else
// CHECK: scf.if
// CHECK: call @devscope_narrow
// CHECK: else
// CHECK: call @devscope_contraction
// CHECK: return
func.func @unknown(%a: tensor<?x64xf32>, %b: tensor<64x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Sums of one product are elementwise.
// CHECK-LABEL: func.func {{.*}}outer_product
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK-NOT: call
// CHECK: return
func.func @outer_product(%a: tensor<70x1xf32>, %b: tensor<1x80xf32>) -> tensor<70x80xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<70x80xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<70x80xf32>) -> tensor<70x80xf32>
  %r = linalg.matmul ins(%a, %b : tensor<70x1xf32>, tensor<1x80xf32>) outs(%zeros : tensor<70x80xf32>) -> tensor<70x80xf32>
  return %r : tensor<70x80xf32>
}
