// RUN: devscope lower %s --stage host-buffers | filecheck %s

#dev = #device.scope<"opencl", 0 : i64, "", "">

// A row of the host's array goes to the device without a dense buffer in between, and comes back into one.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     memref.alloc() {{.*}} : memref<8xf32>
// CHECK:         memref.copy %subview{{.*}}, %alloc{{.*}} : memref<8xf32, strided<[1]{{.*}} to memref<8xf32, #opencl0>
// CHECK-NOT:     memref.alloc() {{.*}} : memref<8xf32>
// CHECK:         memref.copy %{{.*}}, %subview{{.*}} : memref<8xf32, #opencl0> to memref<8xf32, strided<[1]
// CHECK-NOT:     memref.alloc() {{.*}} : memref<8xf32>
// CHECK:         return
func.func @rows(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: index) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
  %d = math.tanh %s {device.scope = #dev} : tensor<8xf32>
  %p = tensor.insert_slice %d into %y[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// Several rows stand side by side too, whatever their number.
// CHECK-LABEL: func.func @blocks(
// CHECK-NOT:     memref.alloc(%{{.*}}) {{.*}} : memref<?x8xf32>
// CHECK:         memref.copy %subview{{.*}} : memref<?x8xf32, strided<[8, 1], offset: ?>> to memref<?x8xf32, #opencl0>
// CHECK-NOT:     memref.alloc(%{{.*}}) {{.*}} : memref<?x8xf32>
// CHECK:         memref.copy {{.*}} : memref<?x8xf32, #opencl0> to memref<?x8xf32, strided<[8, 1], offset: ?>>
func.func @blocks(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: index, %n: index) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[%i, 0] [%n, 8] [1, 1] : tensor<4x8xf32> to tensor<?x8xf32>
  %d = math.tanh %s {device.scope = #dev} : tensor<?x8xf32>
  %p = tensor.insert_slice %d into %y[%i, 0] [%n, 8] [1, 1] : tensor<?x8xf32> into tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// The elements of a column do not: the host gathers and spreads them.
// CHECK-LABEL: func.func @columns(
// CHECK:         memref.copy %subview{{.*}} : memref<4xf32, strided<[8], offset: ?>> to memref<4xf32>
// CHECK:         memref.copy {{.*}} : memref<4xf32> to memref<4xf32, #opencl0>
// CHECK:         memref.copy {{.*}} : memref<4xf32, #opencl0> to memref<4xf32>
// CHECK:         memref.copy {{.*}} : memref<4xf32> to memref<4xf32, strided<[8], offset: ?>>
func.func @columns(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %i: index) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[0, %i] [4, 1] [1, 1] : tensor<4x8xf32> to tensor<4xf32>
  %d = math.tanh %s {device.scope = #dev} : tensor<4xf32>
  %p = tensor.insert_slice %d into %y[0, %i] [4, 1] [1, 1] : tensor<4xf32> into tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// Host code reads what came back as well: it stays dense.
// CHECK-LABEL: func.func @read_twice(
// CHECK:         memref.copy {{.*}} : memref<8xf32, #opencl0> to memref<8xf32>
// CHECK:         memref.copy {{.*}} : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
func.func @read_twice(%x: tensor<8xf32>, %y: tensor<4x8xf32>, %i: index) -> (tensor<4x8xf32>, f32) {
  %d = math.tanh %x {device.scope = #dev} : tensor<8xf32>
  %p = tensor.insert_slice %d into %y[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
  %h = math.exp %d {device.scope = #device.scope<"cpu", 0 : i64, "", "">} : tensor<8xf32>
  %e = tensor.extract %h[%i] : tensor<8xf32>
  return %p, %e : tensor<4x8xf32>, f32
}
