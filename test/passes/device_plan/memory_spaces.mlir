// The memory space of a buffer's type and the memory of its scope agree.
// RUN: devscope-opt %s -p 'device-plan,device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev_global = #device.scope<"opencl", 0 : i64, "", "global">

// A type names the memory; an annotation the device. Views and what is read are there, too.
// CHECK-LABEL: func.func @named(
// CHECK-SAME:    %[[M:\w+]]: memref<8xf32, "global"> {device.scope = #opencl0_global})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0_global})
// CHECK-NEXT:    %[[SUBVIEW:.*]] = memref.subview %[[M]][0] [4] [1] {device.scope = #opencl0_global}
// CHECK-NEXT:    %[[V0:.*]] = bufferization.to_tensor %[[SUBVIEW]] restrict {device.scope = #opencl0_global}
// CHECK-NEXT:    %[[V1:.*]] = math.tanh %[[V0]] {device.scope = #opencl0_global}
// CHECK-NEXT:    memref.dealloc %[[M]] {device.scope = #opencl0_global}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @named(%m: memref<8xf32, "global">) -> tensor<4xf32> {
  %v = memref.subview %m[0] [4] [1] : memref<8xf32, "global"> to memref<4xf32, "global">
  %0 = bufferization.to_tensor %v restrict : memref<4xf32, "global"> to tensor<4xf32>
  %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
  memref.dealloc %m {device.scope = #dev} : memref<8xf32, "global">
  return %1 : tensor<4xf32>
}

// A scope as memory space is a demand.
// CHECK-LABEL: func.func @scope(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #opencl0_global})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0_global})
// CHECK-NEXT:    %[[ALLOC:.*]] = memref.alloc() {device.scope = #opencl0_global}
// CHECK-NEXT:    bufferization.materialize_in_destination %[[X]] in writable %[[ALLOC]] {device.scope = #opencl0_global}
// CHECK-NEXT:    %[[V0:.*]] = bufferization.to_tensor %[[ALLOC]] restrict writable {device.scope = #opencl0_global}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @scope(%x: tensor<4xf32>) -> tensor<4xf32> {
  %m = memref.alloc() : memref<4xf32, #dev_global>
  bufferization.materialize_in_destination %x in writable %m : (tensor<4xf32>, memref<4xf32, #dev_global>) -> ()
  %0 = bufferization.to_tensor %m restrict writable : memref<4xf32, #dev_global> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The memory of a tensor is the host's, wherever the tensor is.
// CHECK-LABEL: func.func @of_the_host(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = math.tanh %[[X]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[COPY:.*]] = device.device_copy %[[V0]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[M:.*]] = bufferization.to_buffer %[[COPY]] :
// CHECK-NEXT:    %[[V1:.*]] = bufferization.to_tensor %[[M]] restrict :
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @of_the_host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  %m = bufferization.to_buffer %0 : tensor<4xf32> to memref<4xf32>
  %1 = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// gpu's address spaces are names of memories; numbers are the target's business.
// CHECK-LABEL: func.func @gpu(
// CHECK-SAME:    %[[M:\w+]]: memref<4xf32, #gpu.address_space<global>> {device.scope = #opencl0_global},
// CHECK-SAME:    %[[N:\w+]]: memref<4xf32, 3> {device.scope = #opencl0})
// CHECK-NEXT:    "my.use"(%[[M]]) {device.scope = #opencl0_global}
// CHECK-NEXT:    "my.use"(%[[N]]) {device.scope = #opencl0}
// CHECK-NEXT:    return
// CHECK-NEXT:  }
func.func @gpu(%m: memref<4xf32, #gpu.address_space<global>>, %n: memref<4xf32, 3>) {
  "my.use"(%m) {device.scope = #dev} : (memref<4xf32, #gpu.address_space<global>>) -> ()
  "my.use"(%n) {device.scope = #dev} : (memref<4xf32, 3>) -> ()
  return
}

// A cast changes the type, not where the buffer is.
// CHECK-LABEL: func.func @cast(
// CHECK-SAME:    %[[M:\w+]]: memref<4xf32, "global"> {device.scope = #cpu0_global})
// CHECK-SAME:    -> (memref<4xf32> {device.scope = #cpu0_global})
// CHECK-NEXT:    %[[MEMSPACECAST:.*]] = memref.memory_space_cast %[[M]] {device.scope = #cpu0_global}
// CHECK-NEXT:    return %[[MEMSPACECAST]]
// CHECK-NEXT:  }
func.func @cast(%m: memref<4xf32, "global">) -> memref<4xf32> {
  %0 = memref.memory_space_cast %m : memref<4xf32, "global"> to memref<4xf32>
  return %0 : memref<4xf32>
}

// CHECK-LABEL: func.func private @external(
// CHECK-SAME:    memref<4xf32, "global"> {device.scope = #opencl0_global})
// CHECK-SAME:    -> (memref<4xf32, "texture"> {device.scope = #cpu0_texture})
func.func private @external(memref<4xf32, "global"> {device.scope = #dev}) -> memref<4xf32, "texture">
