// RUN: devscope lower %s --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --stage kernels | filecheck %s --check-prefix=KERNEL
// RUN: devscope lower %s --stage memory | filecheck %s --check-prefix=MEMORY

#dev = #device.scope<"opencl", 0 : i64, "", "">
#wg = #gpu.address_space<workgroup>

// A launch becomes a call over buffers. What starts empty is not copied, what is needed later is; one of two equal
// kernels is left. Extents that the kernel leaves open are cast.
// LAUNCH-LABEL: func.func private @launches_opencl0_0
// LAUNCH-SAME:    (%[[X:.*]]: memref<8xf32, #opencl0>
// LAUNCH:         %[[FRESH:.*]] = memref.alloc()
// LAUNCH-NOT:     memref.copy
// LAUNCH:         call @kernel(%{{.*}}, %{{.*}}, %{{.*}}, %c1, %c1, %{{.*}}, %c1, %c1, %{{.*}})
// LAUNCH:         %[[COPY:.*]] = memref.alloc()
// LAUNCH:         memref.copy %[[FRESH]], %[[COPY]]
// LAUNCH:         call @kernel(
// LAUNCH-NOT:     call
// LAUNCH:         return %[[FRESH]], %[[COPY]]
func.func @launches(%x: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bytes = arith.muli %n, %c4 : index
  %e = tensor.empty() : tensor<8xf32>
  %0 = "device.launch"(%n, %c1, %c1, %n, %c1, %c1, %bytes) ({
    "device.in"(%x) : (tensor<8xf32>) -> ()
    "device.out"(%e) : (tensor<8xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index, index) -> tensor<8xf32>
  %1 = "device.launch"(%n, %c1, %c1, %n, %c1, %c1, %bytes) ({
    "device.in"(%x) : (tensor<8xf32>) -> ()
    "device.out"(%0) : (tensor<8xf32>) -> ()
  }) {kernel = @equal, device.scope = #dev} : (index, index, index, index, index, index, index) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
// MEMORY-LABEL: func.func @devscope_function_launches
// MEMORY:         devscope.storage
// MEMORY:         call @devscope_function_kernel

// The function of the kernel's name launches it, with local memory.
// LAUNCH:       func.func private @kernel(%arg0: memref<?xf32, #opencl0>, %arg1: memref<?xf32, #opencl0>, %arg2: index,
// LAUNCH:         %[[I32:.*]] = arith.index_cast %{{.*}} : index to i32
// LAUNCH:         gpu.launch_func  @kernel_kernel::@kernel blocks in (%arg2, %arg3, %arg4) threads in (%arg5, %arg6, %arg7)
// LAUNCH-SAME:      dynamic_shared_memory_size %[[I32]] args(%arg0 : memref<?xf32, #opencl0>, %arg1 : memref<?xf32, #opencl0>)
// LAUNCH-SAME:      {devscope.static_local = 2 : i64}
// LAUNCH-NOT:   @equal

// Local memory of static size is an attribution; arguments and views of them are in the device's memory, and
// other allocations private to a work-item.
// KERNEL:       gpu.func @kernel(%[[X:.*]]: memref<?xf32, #opencl0>, %[[Y:.*]]: memref<?xf32, #opencl0>)
// KERNEL-SAME:    workgroup(%{{.*}} : memref<4x4xi64, #gpu.address_space<workgroup>>, %{{.*}} : memref<2xf16, #gpu.address_space<workgroup>>) kernel
// KERNEL:         memref.alloca() : memref<3xf32>
// KERNEL:         gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// KERNEL:         memref.subview %[[X]]{{.*}} to memref<2xf32, strided<[1], offset: 1>, #opencl0>
// KERNEL:         gpu.barrier
// KERNEL:         gpu.return
func.func private @kernel(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %one = memref.alloca() : memref<4x4xi64, #wg>
  %two = memref.alloca() : memref<2xf16, #wg>
  %private = memref.alloca() : memref<3xf32>
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #wg>
  %floats = memref.view %bytes[%c0][%c4] : memref<?xi8, #wg> to memref<?xf32, #wg>
  %part = memref.subview %x[1] [2] [1] : memref<?xf32> to memref<2xf32, strided<[1], offset: 1>>
  %v = memref.load %part[%c1] : memref<2xf32, strided<[1], offset: 1>>
  memref.store %v, %private[%c0] : memref<3xf32>
  memref.store %v, %floats[%t] : memref<?xf32, #wg>
  %h = arith.truncf %v : f32 to f16
  memref.store %h, %two[%c0] : memref<2xf16, #wg>
  %i = arith.fptosi %v : f32 to i64
  memref.store %i, %one[%c0, %c1] : memref<4x4xi64, #wg>
  gpu.barrier
  %w = memref.load %private[%c0] : memref<3xf32>
  memref.store %w, %y[%t] : memref<?xf32>
  return
}
func.func private @equal(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %one = memref.alloca() : memref<4x4xi64, #wg>
  %two = memref.alloca() : memref<2xf16, #wg>
  %private = memref.alloca() : memref<3xf32>
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #wg>
  %floats = memref.view %bytes[%c0][%c4] : memref<?xi8, #wg> to memref<?xf32, #wg>
  %part = memref.subview %x[1] [2] [1] : memref<?xf32> to memref<2xf32, strided<[1], offset: 1>>
  %v = memref.load %part[%c1] : memref<2xf32, strided<[1], offset: 1>>
  memref.store %v, %private[%c0] : memref<3xf32>
  memref.store %v, %floats[%t] : memref<?xf32, #wg>
  %h = arith.truncf %v : f32 to f16
  memref.store %h, %two[%c0] : memref<2xf16, #wg>
  %i = arith.fptosi %v : f32 to i64
  memref.store %i, %one[%c0, %c1] : memref<4x4xi64, #wg>
  gpu.barrier
  %w = memref.load %private[%c0] : memref<3xf32>
  memref.store %w, %y[%t] : memref<?xf32>
  return
}
