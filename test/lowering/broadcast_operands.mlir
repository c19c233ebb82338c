// RUN: devscope lower %s --stage schedule | filecheck %s
// RUN: devscope lower %s --stage host-llvm | filecheck %s --check-prefix=LLVM

// A gate, which takes long and is broadcast to rows, is computed once for each of them, where its products are; rows
// that are multiplied by it are gone through from begin to end, not by blocks of several rows.

// CHECK:          :20:8: linalg.contract, b 1, m 1, n 256, k 16, f32: narrow with
// CHECK-NEXT:     :21:8: linalg.generic, b 1, m 1, n 256, f32: in the kernel of {{.*}}:20:8
// CHECK-NEXT:     :23:8: linalg.generic, 256 x 784, f32: loops

// LLVM-NOT:       call i64 @llvm.umin.i64(i64 %{{[0-9]+}}, i64 64)
// LLVM:           define void @devscope_kernel_task_0
#all = affine_map<(i, j) -> (i, j)>
#each = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<256x784xf32>, %v: tensor<16xf32>, %w: tensor<16x256xf32>) -> tensor<256x784xf32>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<256xf32>) -> tensor<256xf32>
  %0 = linalg.vecmat ins(%v, %w : tensor<16xf32>, tensor<16x256xf32>) outs(%z : tensor<256xf32>) -> tensor<256xf32>
  %1 = math.tanh %0 : tensor<256xf32>
  %whole = tensor.empty() : tensor<256x784xf32>
  %2 = linalg.generic {indexing_maps = [#all, #each, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %1 : tensor<256x784xf32>, tensor<256xf32>) outs(%whole : tensor<256x784xf32>) {
  ^bb0(%in: f32, %c: f32, %o: f32):
    %y = arith.mulf %in, %c : f32
    linalg.yield %y : f32
  } -> tensor<256x784xf32>
  return %2 : tensor<256x784xf32>
}
