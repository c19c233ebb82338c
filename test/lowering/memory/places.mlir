// RUN: devscope lower %s --stage memory | filecheck %s
// RUN: devscope lower %s --stage memory --storage dynamic | filecheck %s --check-prefix=DYNAMIC
// RUN: devscope lower %s --stage host | filecheck %s --check-prefix=CALLS

// Buffers that are not needed at the same time have the same place; results have none.
func.func @chain(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %i1 = linalg.fill ins(%one : f32) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.matmul ins(%0, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %i2 = linalg.fill ins(%two : f32) outs(%e2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%1, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i2 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e3 = tensor.empty() : tensor<8x8xf32>
  %i3 = linalg.fill ins(%three : f32) outs(%e3 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.matmul ins(%2, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i3 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_chain(
// CHECK:         %[[R:.*]] = memref.alloc() {alignment = 64 : i64, devscope.result = 0 : i64} : memref<8x8xf32>
// CHECK:         %[[A:.*]] = memref.alloc() {{.*}}devscope.storage = array<i64: 0, 0, 256>
// CHECK:         memref.dealloc %[[A]] {devscope.storage = array<i64: 0>}
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() {{.*}}devscope.storage = array<i64: 0, 0, 256>
// CHECK:         memref.dealloc %[[B]] {devscope.storage = array<i64: 0>}
// CHECK-NEXT:    return %[[R]]

// DYNAMIC-NOT: devscope.storage

// CALLS-LABEL: func.func @devscope_function_chain(
// CALLS:         call @devscope_result_buffer
// CALLS:         call @devscope_place_on_host
// CALLS:         call @devscope_done_on_host
