// The program shapes on which TVM Relax (0.27, RealizeVDevice) was tried, and what it does with each.
// RUN: devscope-opt %s -p 'device-plan,device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice
// RUN: devscope-opt %s -p 'device-plan{arguments=host},device-verify' | filecheck %s --check-prefix=HOST

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"cuda", 0 : i64, "", "">
!t = tensor<64x64xf32>

// Branches on two devices. Relax: the value that they join in, and all after it, get no device; no copy is made,
// and the result is on one device or the other, depending on the path. Here: one copy, on the path that needs it.
// CHECK-LABEL: func.func @if_else(
// CHECK-SAME:    %[[P:\w+]]: i1, %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = scf.if %[[P]] -> (tensor<64x64xf32>) {
// CHECK-NEXT:      %[[V2:.*]] = math.exp %[[X]]
// CHECK-NEXT:      scf.yield %[[V2]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[V2:.*]] = math.exp %[[Y]] {device.scope = #cuda0}
// CHECK-NEXT:      %[[V3:.*]] = device.device_copy %[[V2]] from #cuda0 to #cpu0
// CHECK-NEXT:      scf.yield %[[V3]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V1:.*]] = math.tanh %[[V0]]
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @if_else(%p: i1, %x: !t, %y: !t) -> !t {
  %0 = scf.if %p -> (!t) {
    %1 = math.exp %x : !t
    %2 = "device.on_device"(%1) {scope = #cpu} : (!t) -> !t
    scf.yield %2 : !t
  } else {
    %1 = math.exp %y : !t
    %2 = "device.on_device"(%1) {scope = #gpu} : (!t) -> !t
    scf.yield %2 : !t
  }
  %3 = math.tanh %0 : !t
  return %3 : !t
}

// A call of a function of the module. Relax: the callee is not planned, and what the caller does with the result
// has no device. Here: scopes go through the call, in both directions.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[W:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.mulf %[[X]], %[[W]]
// CHECK-NEXT:    %[[V1:.*]] = math.tanh %[[V0]]
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
// CHECK-LABEL: func.func private @layer_cuda_0(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[W:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.mulf %[[X]], %[[W]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V1:.*]] = math.tanh %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func private @layer(%x: !t, %w: !t) -> !t {
  %0 = arith.mulf %x, %w : !t
  %1 = math.tanh %0 : !t
  return %1 : !t
}
// CHECK-LABEL: func.func @call_of_a_function(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[W:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = call @layer_cuda_0(%[[X]], %[[W]])
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V2:.*]] = math.exp %[[V1]]
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @call_of_a_function(%x: !t, %w: !t) -> !t {
  %0 = func.call @layer(%x, %w) : (!t, !t) -> !t
  %1 = "device.on_device"(%0) {scope = #gpu} : (!t) -> !t
  %2 = math.exp %1 : !t
  return %2 : !t
}

// The same function called from two devices. Relax: one copy of it, which is not planned, and no error. Here: a
// clone for each.
// CHECK-LABEL: func.func @called_from_two_devices(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<64x64xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[W:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[W]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = call @layer(%[[X]], %[[W]])
// CHECK-NEXT:    %[[V2:.*]] = call @layer_cuda_0(%[[Y]], %[[V0]])
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V1]], %[[V3]]
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @called_from_two_devices(%x: !t, %y: !t, %w: !t) -> !t {
  %0 = func.call @layer(%x, %w) : (!t, !t) -> !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = func.call @layer(%y, %w) : (!t, !t) -> !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %1, %3 : !t
  return %4 : !t
}

// A function passed to a function. Relax: the inner function is planned, the outer one and its result are not.
// CHECK-LABEL: func.func private @square(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.mulf %[[X]], %[[X]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @square(%x: !t) -> !t {
  %0 = arith.mulf %x, %x : !t
  %1 = "device.on_device"(%0) {scope = #gpu} : (!t) -> !t
  return %1 : !t
}
// CHECK-LABEL: func.func private @apply(
// CHECK-SAME:    %[[F:\w+]]: (tensor<64x64xf32>) -> tensor<64x64xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = call_indirect %[[F]](%[[X]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @apply(%f: (!t) -> !t, %x: !t) -> !t {
  %0 = func.call_indirect %f(%x) : (!t) -> !t
  return %0 : !t
}
// CHECK-LABEL: func.func @higher_order(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[F:.*]] = constant @square
// CHECK-NEXT:    %[[V0:.*]] = call @apply(%[[F]], %[[X]])
// CHECK-NEXT:    %[[V1:.*]] = math.exp %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @higher_order(%x: !t) -> !t {
  %f = func.constant @square : (!t) -> !t
  %0 = func.call @apply(%f, %x) : ((!t) -> !t, !t) -> !t
  %1 = math.exp %0 : !t
  return %1 : !t
}

// An input that two devices want. Relax: error, "Binary operators with Tensor arguments must have the same
// VDevice". Here: one copy of it.
// CHECK-LABEL: func.func @shared_input(
// CHECK-SAME:    %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[V0]], %[[C]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V1]], %[[V3]]
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @shared_input(%a: !t, %b: !t, %c: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %b, %c : !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %1, %3 : !t
  return %4 : !t
}

// Operands on two devices. Relax: the same error, without a position. Here: the operation is on the default
// device, and what is elsewhere is copied.
// CHECK-LABEL: func.func @two_operands(
// CHECK-SAME:    %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[V0]]
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @two_operands(%a: !t, %b: !t) -> !t {
  %0 = "device.on_device"(%a) {scope = #cpu} : (!t) -> !t
  %1 = "device.on_device"(%b) {scope = #gpu} : (!t) -> !t
  %2 = arith.addf %0, %1 : !t
  return %2 : !t
}

// Several values on two devices at once. Relax: works, per field of a tuple. Here: per result.
// CHECK-LABEL: func.func @two_results(
// CHECK-SAME:    %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0}, tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = math.exp %[[A]]
// CHECK-NEXT:    %[[V1:.*]] = math.exp %[[B]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]], %[[V1]]
// CHECK-NEXT:  }
func.func @two_results(%a: !t, %b: !t) -> (!t, !t) {
  %0 = math.exp %a : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = math.exp %b : !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  return %1, %3 : !t, !t
}

// A part that no annotation reaches. Relax: it gets no device. Here: the default.
// CHECK-LABEL: func.func @not_annotated(
// CHECK-SAME:    %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[B:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0}, tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = math.exp %[[A]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V1:.*]] = math.exp %[[B]]
// CHECK-NEXT:    return %[[V0]], %[[V1]]
// CHECK-NEXT:  }
func.func @not_annotated(%a: !t, %b: !t) -> (!t, !t) {
  %0 = math.exp %a : !t
  %1 = "device.on_device"(%0) {scope = #gpu} : (!t) -> !t
  %2 = math.exp %b : !t
  return %1, %2 : !t, !t
}

// An annotated parameter. Relax: the parameter moves, which changes how callers must call. Here, too, unless
// arguments are pinned to the host: then they are copied.
// HOST-LABEL:  func.func @parameter(
// HOST-SAME:     %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// HOST-SAME:     -> (tensor<64x64xf32> {device.scope = #cpu0})
// HOST-NEXT:     %[[V0:.*]] = device.device_copy %[[A]] from #cpu0 to #cuda0
// HOST-NEXT:     %[[V1:.*]] = math.exp %[[V0]] {device.scope = #cuda0}
// HOST-NEXT:     %[[V2:.*]] = device.device_copy %[[V1]] from #cuda0 to #cpu0
// HOST-NEXT:     return %[[V2]]
// CHECK-LABEL: func.func @parameter(
// CHECK-SAME:    %[[A:\w+]]: tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = math.exp %[[A]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @parameter(%a: !t) -> !t {
  %0 = "device.on_device"(%a) {scope = #gpu, constrain_result = true} : (!t) -> !t
  %1 = math.exp %0 : !t
  return %1 : !t
}
