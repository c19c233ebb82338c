// RUN: devscope lower %s --stage kernels --default opencl:0 | filecheck %s

// Rows in another order are vectors, backwards they are turned.

// CHECK: gpu.func @turned
// CHECK: vector.load
// CHECK: vector.shuffle {{.*}} [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
// CHECK: vector.store {{.*}}, vector<16xf32>
func.func @turned(%a: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %last = arith.constant 63 : index
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %k = arith.subi %last, %j : index
    %x = tensor.extract %a[%i, %k] : tensor<8x64xf32>
    tensor.yield %x : f32
  } : tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// Elements from anywhere are loaded one by one, and stored together.

// CHECK: gpu.func @anywhere
// CHECK: vector.load {{.*}}, vector<8xi64>
// CHECK-COUNT-8: memref.load {{.*}} : memref<64xf32
// CHECK: vector.from_elements
// CHECK: vector.store {{.*}}, vector<8xf32>
func.func @anywhere(%a: tensor<64xf32>, %i: tensor<320xi64>) -> tensor<320xf32> {
  %e = tensor.empty() : tensor<320xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i : tensor<320xi64>) outs(%e : tensor<320xf32>) {
  ^bb0(%to: i64, %out: f32):
    %k = arith.index_cast %to : i64 to index
    %x = tensor.extract %a[%k] : tensor<64xf32>
    linalg.yield %x : f32
  } -> tensor<320xf32>
  return %r : tensor<320xf32>
}

// Windows that overlap are loads of the body.

// CHECK: gpu.func @windows
// CHECK: %[[PART:.*]] = vector.load {{.*}}, vector<8xf32>
// CHECK: vector.store %[[PART]], {{.*}}, vector<8xf32>
func.func @windows(%x: tensor<4x200xf32>) -> tensor<4x49x8xf32> {
  %e = tensor.empty() : tensor<4x49x8xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, j * 4 + k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x200xf32>) outs(%e : tensor<4x49x8xf32>) {
  ^bb0(%v: f32, %out: f32):
    linalg.yield %v : f32
  } -> tensor<4x49x8xf32>
  return %r : tensor<4x49x8xf32>
}
