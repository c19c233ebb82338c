// RUN: devscope lower %s --stage memory | filecheck %s

#dev = #device.scope<"opencl", 0 : i64, "", "">

// What is called once is inlined with its buffers: the launcher, and a private function of the host.
func.func private @twice(%x: tensor<32xf32>) -> tensor<32xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<32xf32>
  return %0 : tensor<32xf32>
}
func.func @inlined(%x: tensor<32xf32>) -> tensor<32xf32> {
  %0 = func.call @twice(%x) : (tensor<32xf32>) -> tensor<32xf32>
  return %0 : tensor<32xf32>
}
// CHECK-LABEL: func.func @devscope_function_inlined(
// CHECK:         memref.alloc() {{.*}}devscope.storage{{.*}} : memref<32xf32, #opencl0>
// CHECK:         call @{{.*}}_generic_{{[0-9]+}}(

// Recursive functions have several frames: their buffers have no places.
func.func private @down(%x: tensor<32xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %0 = math.tanh %x : tensor<32xf32>
  %last = arith.cmpi sle, %n, %c0 : index
  %r = scf.if %last -> f32 {
    scf.yield %zero : f32
  } else {
    %m = arith.subi %n, %c1 : index
    %s = func.call @down(%0, %m) : (tensor<32xf32>, index) -> f32
    %v = tensor.extract %0[%c0] : tensor<32xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  return %r : f32
}
func.func @recursive(%x: tensor<32xf32>, %n: index) -> f32 {
  %0 = func.call @down(%x, %n) : (tensor<32xf32>, index) -> f32
  return %0 : f32
}
// CHECK-LABEL: func.func private @devscope_function_down(
// CHECK-NOT:     devscope.storage
// CHECK-LABEL: func.func @devscope_function_recursive(

// What is copied to or from a device in a loop shares its bytes with nothing: on a device, it is a buffer of its own.
func.func @copies_in_loop(%x: tensor<32xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
    %b = tensor.splat %s : tensor<32xf32>
    %0 = arith.addf %x, %b : tensor<32xf32>
    %1 = math.tanh %0 {device.scope = #dev} : tensor<32xf32>
    %2 = arith.mulf %1, %1 : tensor<32xf32>
    %v = tensor.extract %2[%c0] : tensor<32xf32>
    scf.yield %v : f32
  }
  return %r : f32
}
// CHECK-LABEL: func.func @devscope_function_copies_in_loop(
// CHECK:         memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, 256, 128>{{.*}} : memref<32xf32>
// CHECK-NEXT:    memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, 0, 128>{{.*}} : memref<32xf32>
// CHECK-NEXT:    memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, -1, 128>{{.*}} : memref<32xf32, #opencl0>
// CHECK-NEXT:    memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, 128, 128>{{.*}} : memref<32xf32>
// CHECK-NEXT:    scf.for
// CHECK:           memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, -1, 128>{{.*}} : memref<32xf32, #opencl0>
