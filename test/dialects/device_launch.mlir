// RUN: devscope-opt %s | filecheck %s
// RUN: devscope-opt %s --print-op-generic | devscope-opt | filecheck %s
// RUN: devscope-opt %s | devscope-opt -p canonicalize,cse | filecheck %s

// A launch and its kernel, through MLIR and xDSL: arguments of different types, two results, local memory.
#dev = #device.scope<"opencl", 0 : i64, "", "">

// CHECK-LABEL: func.func private @kernel
// CHECK-SAME:    (%{{.*}}: f32, %{{.*}}: memref<?xf32>, %{{.*}}: memref<4x?xi32>, %{{.*}}: memref<?xf32>)
// CHECK-SAME:    attributes {device.kernel}
func.func private @kernel(%a: f32, %x: memref<?xf32>, %y: memref<4x?xi32>, %z: memref<?xf32>) attributes {device.kernel} {
  // CHECK: gpu.thread_id x
  %t = gpu.thread_id x
  // CHECK: gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  // CHECK: gpu.barrier
  gpu.barrier
  return
}

// CHECK-LABEL: func.func @launch
func.func @launch(%a: f32, %x: tensor<?xf32>, %y: tensor<4x?xi32>, %n: index) -> (tensor<4x?xi32>, tensor<?xf32>) {
  // CHECK:      %[[R:.*]]:2 = "device.launch"(%[[N:.*]], %[[N]], %[[N]], %[[N]], %[[N]], %[[N]], %[[N]]) ({
  // CHECK-NEXT:   "device.in"(%{{.*}}) : (f32) -> ()
  // CHECK-NEXT:   "device.in"(%{{.*}}) : (tensor<?xf32>) -> ()
  // CHECK-NEXT:   "device.out"(%{{.*}}) : (tensor<4x?xi32>) -> ()
  // CHECK-NEXT:   "device.out"(%{{.*}}) : (tensor<?xf32>) -> ()
  // CHECK-NEXT: }) {device.scope = #opencl0, kernel = @kernel} : (index, index, index, index, index, index, index) -> (tensor<4x?xi32>, tensor<?xf32>)
  %0:2 = "device.launch"(%n, %n, %n, %n, %n, %n, %n) ({
    "device.in"(%a) : (f32) -> ()
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<4x?xi32>) -> ()
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev}
    : (index, index, index, index, index, index, index) -> (tensor<4x?xi32>, tensor<?xf32>)
  // CHECK: return %[[R]]#0, %[[R]]#1
  return %0#0, %0#1 : tensor<4x?xi32>, tensor<?xf32>
}
