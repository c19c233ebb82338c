// RUN: devscope lower %s --stage memory --machine %S/Inputs/shared.toml | filecheck %s
// RUN: devscope lower %s --stage memory | filecheck %s --check-prefix=APART
// RUN: devscope lower %s --stage host --machine %S/Inputs/shared.toml | filecheck %s --check-prefix=CALLS

#host = #device.scope<"cpu", 0 : i64, "", "">
#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
#other = #device.scope<"opencl", 2 : i64, "", "">

// The host reads a device's result where it is; the buffer lives as long. Without a description it is copied.
func.func @read(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8x8xf32>
  %1 = math.exp %0 {device.scope = #host} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_read(
// CHECK:         %[[D:.*]] = memref.alloc() {{.*}} : memref<8x8xf32, #opencl0>
// CHECK:         call @{{.*}}_generic_{{[0-9]}}(%[[D]], %[[D]])
// CHECK-NEXT:    %[[H:.*]] = memref.memory_space_cast %[[D]] :
// CHECK:         linalg.generic {{.*}} ins(%[[H]] :
// CHECK:         memref.dealloc %[[D]]
// APART-LABEL: func.func @devscope_function_read(
// APART-NOT:     memory_space_cast
// CALLS-LABEL: func.func @devscope_function_read(
// CALLS:         call @devscope_map({{.*}}, %c0_i64{{[_0-9]*}})

// Sizes may be dynamic.
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<?x4xf32>
  %1 = math.exp %0 {device.scope = #host} : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @devscope_function_dynamic(
// CHECK:         memref.memory_space_cast {{.*}} to memref<?x4xf32>

// Nobody else uses the buffer: the host may write there.
func.func @taken_over(%x: tensor<8xf32>, %i: index, %j: index, %v: f32) -> f32 {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8xf32>
  %1 = tensor.insert %v into %0[%i] {device.scope = #host} : tensor<8xf32>
  %2 = tensor.extract %1[%j] : tensor<8xf32>
  return %2 : f32
}
// CHECK-LABEL: func.func @devscope_function_taken_over(
// CHECK:         %[[H:.*]] = memref.memory_space_cast %{{.*}} {devscope.written}
// CHECK-NEXT:    memref.store %{{.*}}, %[[H]]
// CALLS-LABEL: func.func @devscope_function_taken_over(
// CALLS:         call @devscope_map({{.*}}, %c1_i64{{[_0-9]*}})

// The device needs what the host would overwrite: it is copied, to where the device needs it then.
func.func @written_while_used(%x: tensor<8xf32>, %i: index, %v: f32) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8xf32>
  %1 = tensor.insert %v into %0[%i] {device.scope = #host} : tensor<8xf32>
  %2 = arith.addf %0, %1 {device.scope = #dev} : tensor<8xf32>
  return %2 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_written_while_used(
// CHECK:         %[[H:.*]] = memref.memory_space_cast %{{.*}} {devscope.filled}
// CHECK:         memref.copy %{{.*}}, %[[H]] : memref<8xf32, #opencl0> to memref<8xf32>
// CHECK-NEXT:    memref.store %{{.*}}, %[[H]]

// In a loop the buffer shares its bytes with no other one.
func.func @in_loop(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %0 = math.tanh %a {device.scope = #dev} : tensor<8xf32>
    %1 = math.exp %0 {device.scope = #host} : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_in_loop(
// CHECK:         scf.for
// CHECK:           %[[D:.*]] = memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, -1, 32>
// CHECK:           memref.memory_space_cast %[[D]]

// Another device reads it where it is; the buffer is its own, and ends after that.
func.func @two_devices(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8xf32>
  %1 = math.exp %0 {device.scope = #dev1} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_two_devices(
// CHECK:         %[[D:.*]] = memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, -1, 32>} : memref<8xf32, #opencl0>
// CHECK:         %[[V:.*]] = memref.memory_space_cast %[[D]] : memref<8xf32, #opencl0> to memref<8xf32, #opencl1>
// CHECK:         call @{{.*}}_opencl1_{{.*}}(%[[V]], %{{.*}})
// CHECK:         "device.end_view"(%[[D]], %[[V]])
// CHECK:         memref.dealloc %[[D]]
// CALLS-LABEL: func.func @devscope_function_two_devices(
// CALLS:         call @devscope_view(%c1_i64{{[_0-9]*}}, %{{.*}}, %c2_i64{{[_0-9]*}})
// CALLS:         call @devscope_function_two_devices_opencl1
// CALLS:         call @devscope_view_done(%c1_i64{{[_0-9]*}}, %{{.*}}, %c2_i64{{[_0-9]*}}, %{{.*}})

// The host makes what the device needs in the device's buffer, which is its own. Arguments are copied.
func.func @made(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #host} : tensor<8xf32>
  %1 = arith.addf %0, %x {device.scope = #dev} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_made(
// CHECK:         memref.copy %arg0, %{{.*}} : memref<8xf32> to memref<8xf32, #opencl0>
// CHECK:         %[[D:.*]] = memref.alloc() {{.*}}devscope.storage = array<i64: {{[0-9]+}}, -1, 32>} : memref<8xf32, #opencl0>
// CHECK:         %[[H:.*]] = memref.memory_space_cast %[[D]] {devscope.filled} : memref<8xf32, #opencl0> to memref<8xf32>
// CHECK:         linalg.generic {{.*}} outs(%[[H]] : memref<8xf32>)
// CHECK:         "device.publish"(%[[H]])
// CHECK:         call @{{.*}}_opencl0_{{.*}}(%[[D]], %{{.*}}, %{{.*}})
// CALLS-LABEL: func.func @devscope_function_made(
// CALLS:         call @devscope_map_new_buffer(
// CALLS:         call @devscope_publish_buffer(

// A loop that swaps its buffers.
func.func @carried(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = math.exp %x {device.scope = #dev} : tensor<8xf32>
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%a = %t, %h = %x) -> (tensor<8xf32>, tensor<8xf32>) {
    %0 = math.tanh %a {device.scope = #dev} : tensor<8xf32>
    %1 = math.exp %0 {device.scope = #host} : tensor<8xf32>
    %2 = arith.addf %1, %h {device.scope = #host} : tensor<8xf32>
    scf.yield %0, %2 : tensor<8xf32>, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_carried(
// CHECK-NOT:     memory_space_cast
// CHECK:       return

// Results have memory of their own.
func.func @returned(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_returned(
// CHECK-NOT:     memory_space_cast
// CHECK:       return

// Devices that share no memory with each other do so through no third one.
func.func @three_devices(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #dev1} : tensor<8xf32>
  %1 = math.exp %0 {device.scope = #host} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func @devscope_function_three_devices(
// CHECK-NOT:     memory_space_cast
// CHECK:       return

// The description knows of no shared memory of this device.
func.func @apart(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = math.tanh %x {device.scope = #other} : tensor<8x8xf32>
  %1 = math.exp %0 {device.scope = #host} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_apart(
// CHECK-NOT:     memory_space_cast
// CHECK:       return
