// Vectors that are not full, on an OpenCL device that is a CPU: of a known number of elements they are two pieces.
// RUN: devscope lower %s --default opencl:0 --stage kernels | filecheck %s

// CHECK-LABEL: gpu.func @short_
// CHECK-NOT: memref.load
// CHECK: %[[HEAD:.*]] = vector.load {{.*}}[%[[ROW:.*]], %c16] {{.*}}, vector<4xf32>
// CHECK: %[[TAIL:.*]] = vector.load {{.*}}[%[[ROW]], %c18] {{.*}}, vector<4xf32>
// CHECK: vector.shuffle %[[HEAD]], %[[TAIL]] [0, 1, 2, 3, 6, 7,
// CHECK-NOT: memref.store
// CHECK: vector.store {{.*}}, vector<4xf32>
// CHECK: vector.store {{.*}}, vector<4xf32>
// CHECK: gpu.return
func.func @short(%x: tensor<64x22xf32>, %row: tensor<22xf32>) -> tensor<64x22xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %row : tensor<64x22xf32>, tensor<22xf32>) outs(%x : tensor<64x22xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x22xf32>
  return %y : tensor<64x22xf32>
}
