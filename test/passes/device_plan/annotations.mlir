// How each form of annotation places operations, arguments and results.
// RUN: devscope-opt %s -p 'device-plan,device-verify' | filecheck %s
// RUN: devscope-opt %s -p 'device-plan{arguments=host},device-verify' | filecheck %s --check-prefix=HOST
// RUN: devscope-opt %s -p 'device-plan' > %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">

// The attribute on an operation places that operation; its arguments follow, its consumers do not.
// CHECK-LABEL: func.func @attribute
// CHECK-SAME:    (%[[X:.*]]: tensor<4x4xf32> {device.scope = #opencl0}, %[[W:.*]]: tensor<4x4xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<4x4xf32> {device.scope = #cpu0}) attributes {device.scope = #cpu0}
// CHECK:         %[[Z:.*]] = arith.constant {device.scope = #opencl0} dense<0.000000e+00>
// CHECK-NEXT:    %[[M:.*]] = linalg.matmul {device.scope = #opencl0} ins(%[[X]], %[[W]] {{.*}} outs(%[[Z]]
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[M]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[T:.*]] = math.tanh %[[C]] : tensor<4x4xf32>
// CHECK-NEXT:    return %[[T]]
// HOST-LABEL:  func.func @attribute
// HOST-SAME:     (%[[X:.*]]: tensor<4x4xf32> {device.scope = #cpu0}, %[[W:.*]]: tensor<4x4xf32> {device.scope = #cpu0})
// HOST-NEXT:     %[[XD:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// HOST-NEXT:     %[[WD:.*]] = device.device_copy %[[W]] from #cpu0 to #opencl0
// HOST:          linalg.matmul {device.scope = #opencl0} ins(%[[XD]], %[[WD]]
func.func @attribute(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
                                           outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = math.tanh %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// What stands between two placed operations stays on the default scope.
// CHECK-LABEL: func.func @between
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    device.device_copy %{{.*}} from #opencl0 to #cpu0
// CHECK-NEXT:    math.tanh %{{[0-9]+}} : tensor<4xf32>
// CHECK-NEXT:    device.device_copy %{{.*}} from #cpu0 to #opencl1
// CHECK-NEXT:    math.sqrt %{{.*}} {device.scope = #opencl1}
// CHECK-NEXT:    return
func.func @between(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  %2 = math.sqrt %1 {device.scope = #dev1} : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A result that a placed operation returns is left where it is.
// CHECK-LABEL: func.func @returned
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    return
// HOST-LABEL:  func.func @returned
// HOST-SAME:     -> (tensor<4xf32> {device.scope = #cpu0})
// HOST:          math.exp
// HOST-NEXT:     device.device_copy
// HOST-NEXT:     return
func.func @returned(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Body only: the producer, and its own producers, are computed there; the consumer is not dragged along.
// CHECK-LABEL: func.func @body_only
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    math.sin %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    device.device_copy
// CHECK-NEXT:    math.tanh %{{[0-9]+}} : tensor<4xf32>
func.func @body_only(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.sin %0 : tensor<4xf32>
  %2 = "device.on_device"(%1) {scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = math.tanh %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Fixed: producer and consumer are both there.
// CHECK-LABEL: func.func @fixed
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    math.tanh %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    return
func.func @fixed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  %1 = "device.on_device"(%0) {scope = #dev, constrain_result = true} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.tanh %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Result only: the consumer is there, the producer stays.
// CHECK-LABEL: func.func @result_only
// CHECK:         math.exp %{{[a-z0-9]+}} : tensor<4xf32>
// CHECK-NEXT:    device.device_copy %{{.*}} from #cpu0 to #opencl0
// CHECK-NEXT:    math.tanh %{{.*}} {device.scope = #opencl0}
func.func @result_only(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = math.exp %x : tensor<4xf32>
  %1 = "device.on_device"(%0) {scope = #dev, constrain_body = false, constrain_result = true}
     : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.tanh %1 : tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}

// What nothing places follows the function's first result, when the program says where that is.
// CHECK-LABEL: func.func @follows_result
// CHECK-SAME:    (%{{.*}}: tensor<4xf32> {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    return
func.func @follows_result(%x: tensor<4xf32>) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Neither: a copy is allowed where it is needed, and none is made where it is not.
// CHECK-LABEL: func.func @free
// CHECK-NOT:     device_copy
// CHECK:         math.tanh %{{.*}} {device.scope = #opencl0}
// CHECK:         return
func.func @free(%x: tensor<4xf32> {device.scope = #dev}) -> tensor<4xf32> {
  %0 = "device.on_device"(%x) {scope = #dev, constrain_body = false} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A frame places what is inside; the nearest one wins; it is gone afterwards.
// CHECK-LABEL: func.func @frames
// CHECK-NOT:     device.region
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK:         math.sin %{{.*}} {device.scope = #opencl1}
// CHECK:         math.tanh
// CHECK:         return
func.func @frames(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.region"() ({
    %1 = math.exp %x : tensor<4xf32>
    %2 = math.sin %1 {device.scope = #dev1} : tensor<4xf32>
    "device.yield"(%2) : (tensor<4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<4xf32>
  %3 = math.tanh %0 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// So do a function and control flow; control flow itself never carries a scope afterwards.
// CHECK-LABEL: func.func @function_frame
// CHECK-SAME:    attributes {device.scope = #opencl0}
// CHECK-NEXT:    math.exp %{{[a-z0-9]+}} : tensor<4xf32>
// CHECK:         scf.if
// CHECK:           math.sin %{{.*}} {device.scope = #opencl1}
// CHECK-NOT:     } {device.scope
// CHECK:         return
func.func @function_frame(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> attributes {device.scope = #dev} {
  %0 = math.exp %x : tensor<4xf32>
  %1 = scf.if %p -> (tensor<4xf32>) {
    %2 = math.sin %0 : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  } {device.scope = #dev1}
  return %1 : tensor<4xf32>
}
