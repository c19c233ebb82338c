// TVM's planner tests, https://github.com/apache/tvm tests/python/relay/test_pass_plan_devices.py: the host.
// RUN: devscope-opt %s -p 'device-plan{default=cuda:0},device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan{default=cuda:0}' > %t.twice
// RUN: diff %t.once %t.twice

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"cuda", 0 : i64, "", "">
!t = tensor<5x7xf32>

// test_shape_of: the shape is on the host, whatever device the data is on.
// CHECK-LABEL: func.func @shape_of(
// CHECK-SAME:    %[[X:\w+]]: tensor<?x?xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<2xindex> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = shape.shape_of %[[X]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @shape_of(%x: tensor<?x?xf32>) -> tensor<2xindex> {
  %0 = "device.on_device"(%x) {scope = #gpu, constrain_result = true} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = shape.shape_of %0 : tensor<?x?xf32> -> tensor<2xindex>
  func.return %1 : tensor<2xindex>
}

// With a body-only annotation TVM copies the whole tensor to read its shape.
// CHECK-LABEL: func.func @shape_of_body_only(
// CHECK-SAME:    %[[X:\w+]]: tensor<?x?xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<2xindex> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = shape.shape_of %[[X]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @shape_of_body_only(%x: tensor<?x?xf32>) -> tensor<2xindex> {
  %0 = "device.on_device"(%x) {scope = #gpu} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = shape.shape_of %0 : tensor<?x?xf32> -> tensor<2xindex>
  func.return %1 : tensor<2xindex>
}

// test_alloc_storage: the size is a scalar, and on the host.
// CHECK-LABEL: func.func @alloc_storage(
// CHECK-SAME:    %[[SIZE:\w+]]: index)
// CHECK-SAME:    -> (memref<?xi8> {device.scope = #cuda0})
// CHECK-NEXT:    %[[ALLOC:.*]] = memref.alloc(%[[SIZE]]) {alignment = 64 : i64, device.scope = #cuda0}
// CHECK-NEXT:    return %[[ALLOC]]
// CHECK-NEXT:  }
func.func @alloc_storage(%size: index) -> memref<?xi8> {
  %0 = memref.alloc(%size) {alignment = 64 : i64, device.scope = #gpu} : memref<?xi8>
  func.return %0 : memref<?xi8>
}

// test_alloc_tensor: a view is where its storage is; the offset is on the host.
// CHECK-LABEL: func.func @alloc_tensor(
// CHECK-SAME:    %[[STO:\w+]]: memref<?xi8> {device.scope = #cuda0})
// CHECK-SAME:    -> (memref<3x2xi64> {device.scope = #cuda0})
// CHECK-NEXT:    %[[C0:.*]] = arith.constant 0
// CHECK-NEXT:    %[[VIEW:.*]] = memref.view %[[STO]][%[[C0]]][] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[VIEW]]
// CHECK-NEXT:  }
func.func @alloc_tensor(%sto: memref<?xi8>) -> memref<3x2xi64> {
  %c0 = arith.constant 0 : index
  %0 = memref.view %sto[%c0][] : memref<?xi8> to memref<3x2xi64>
  func.return %0 : memref<3x2xi64>
}

// test_reshape_tensor: a shape that is a tensor is on the host.
// CHECK-LABEL: func.func @reshape_tensor(
// CHECK-SAME:    %[[X:\w+]]: tensor<2x8xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<2x4x2xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[CST:.*]] = arith.constant dense<[2, 4, 2]>
// CHECK-NEXT:    %[[RESHAPE:.*]] = tensor.reshape %[[X]](%[[CST]]) {device.scope = #cuda0}
// CHECK-NEXT:    return %[[RESHAPE]]
// CHECK-NEXT:  }
func.func @reshape_tensor(%x: tensor<2x8xf32>) -> tensor<2x4x2xf32> {
  %s = arith.constant dense<[2, 4, 2]> : tensor<3xi64>
  %0 = tensor.reshape %x(%s) : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<2x4x2xf32>
  func.return %0 : tensor<2x4x2xf32>
}

// test_ref: a cell, what is written to it and what is read from it are on one scope. The write is copied to.
// CHECK-LABEL: func.func @ref(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[Y]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[ALLOC:.*]] = memref.alloc() {device.scope = #cuda0}
// CHECK-NEXT:    bufferization.materialize_in_destination %[[X]] in writable %[[ALLOC]] {device.scope = #cuda0}
// CHECK-NEXT:    bufferization.materialize_in_destination %[[V0]] in writable %[[ALLOC]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V1:.*]] = bufferization.to_tensor %[[ALLOC]] restrict writable {device.scope = #cuda0}
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[X]], %[[V1]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @ref(%x: !t, %y: !t) -> !t {
  %r = memref.alloc() : memref<5x7xf32>
  bufferization.materialize_in_destination %x in writable %r : (!t, memref<5x7xf32>) -> ()
  %0 = "device.on_device"(%y) {scope = #cpu} : (!t) -> !t
  bufferization.materialize_in_destination %0 in writable %r : (!t, memref<5x7xf32>) -> ()
  %1 = bufferization.to_tensor %r restrict writable : memref<5x7xf32> to !t
  %2 = arith.addf %x, %1 : !t
  func.return %2 : !t
}
