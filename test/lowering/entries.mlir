// RUN: devscope lower %s --default opencl:0 --arguments open --stage host | filecheck %s

// An entry takes and gives memrefs in host memory: scalars at rank 0, device arguments copied.
func.func @main(%x: tensor<?xf32>, %s: f32) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %0 = math.tanh %x : tensor<?xf32>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  return %0, %n : tensor<?xf32>, index
}
// CHECK-LABEL: func.func @devscope_entry_main(%arg0: memref<?xf32>, %arg1: memref<f32>)
// CHECK-SAME:    -> (memref<?xf32>, memref<index>) attributes {llvm.emit_c_interface}
// CHECK:         call @devscope_alloc(
// CHECK:         call @devscope_copy(
// CHECK:         call @devscope_function_main(
// CHECK:         call @devscope_free(
// CHECK:         call @devscope_result_buffer
// CHECK:         call @devscope_copy(
// CHECK:         memref.store {{.*}} : memref<index>
// CHECK:         call @devscope_free(
