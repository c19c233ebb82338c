// The program shapes on which IREE (3.13, two devices) was tried, and what it does with each.
// RUN: devscope-opt %s -p 'device-plan{default=opencl:0 arguments=host},device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan{default=opencl:0 arguments=host}' > %t.twice
// RUN: diff %t.once %t.twice

#a = #device.scope<"opencl", 0 : i64, "", "">
#b = #device.scope<"opencl", 1 : i64, "", "">
!t = tensor<64x64xf32>

// No annotations. IREE: all is on the first device, dev_a. Here: on the default.
// CHECK-LABEL: func.func @no_hints(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V1:.*]] = math.exp %[[V0]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V2:.*]] = math.tanh %[[V1]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #opencl0 to #cpu0
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @no_hints(%x: !t) -> !t {
  %0 = math.exp %x : !t
  %1 = math.tanh %0 : !t
  return %1 : !t
}

// Some annotations. IREE: what none reaches is on the default device, the rest goes back to the arguments.
// CHECK-LABEL: func.func @partial_hints(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0}, tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[Y]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V2:.*]] = math.exp %[[V0]] {device.scope = #opencl1}
// CHECK-NEXT:    %[[V3:.*]] = math.tanh %[[V2]] {device.scope = #opencl1}
// CHECK-NEXT:    %[[V4:.*]] = device.device_copy %[[V3]] from #opencl1 to #cpu0
// CHECK-NEXT:    %[[V5:.*]] = math.exp %[[V1]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V6:.*]] = device.device_copy %[[V5]] from #opencl0 to #cpu0
// CHECK-NEXT:    return %[[V4]], %[[V6]]
// CHECK-NEXT:  }
func.func @partial_hints(%x: !t, %y: !t) -> (!t, !t) {
  %0 = math.exp %x : !t
  %1 = math.tanh %0 : !t
  %2 = "device.on_device"(%1) {scope = #b} : (!t) -> !t
  %3 = math.exp %y : !t
  return %2, %3 : !t, !t
}

// Operands on two devices. IREE: all three operations are fused and run on dev_a; the annotation for dev_b is lost
// without a word. Here: each is where it was asked to be, and the sum is on the default.
// CHECK-LABEL: func.func @two_operands(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V2:.*]] = math.tanh %[[V0]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V3:.*]] = math.exp %[[V1]] {device.scope = #opencl1}
// CHECK-NEXT:    %[[V4:.*]] = device.device_copy %[[V3]] from #opencl1 to #opencl0
// CHECK-NEXT:    %[[V5:.*]] = arith.addf %[[V2]], %[[V4]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V6:.*]] = device.device_copy %[[V5]] from #opencl0 to #cpu0
// CHECK-NEXT:    return %[[V6]]
// CHECK-NEXT:  }
func.func @two_operands(%x: !t) -> !t {
  %0 = math.tanh %x : !t
  %1 = "device.on_device"(%0) {scope = #a} : (!t) -> !t
  %2 = math.exp %x : !t
  %3 = "device.on_device"(%2) {scope = #b} : (!t) -> !t
  %4 = arith.addf %1, %3 : !t
  return %4 : !t
}

// Operations after an explicit transfer to dev_b, with weights that are on dev_a. IREE: they are left without a
// place and run on dev_a; dev_b runs nothing. Here: they run on dev_b, and the weights are copied there, once.
// CHECK-LABEL: func.func @after_a_transfer(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[W:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[W]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[W]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V3:.*]] = linalg.matmul {device.scope = #opencl0} ins(%[[V0]], %[[V1]] {{.*}}) outs(%[[V0]]
// CHECK-NEXT:    %[[V4:.*]] = device.device_copy %[[V3]] from #opencl0 to #opencl1
// CHECK-NEXT:    %[[V5:.*]] = linalg.matmul {device.scope = #opencl1} ins(%[[V4]], %[[V2]] {{.*}}) outs(%[[V4]]
// CHECK-NEXT:    %[[V6:.*]] = linalg.matmul {device.scope = #opencl1} ins(%[[V5]], %[[V2]] {{.*}}) outs(%[[V5]]
// CHECK-NEXT:    %[[V7:.*]] = device.device_copy %[[V6]] from #opencl1 to #cpu0
// CHECK-NEXT:    return %[[V7]]
// CHECK-NEXT:  }
func.func @after_a_transfer(%x: !t, %w: !t) -> !t {
  %0 = linalg.matmul {device.scope = #a} ins(%x, %w : !t, !t) outs(%x : !t) -> !t
  %1 = "device.device_copy"(%0) {src = #a, dst = #b} : (!t) -> !t
  %2 = linalg.matmul ins(%1, %w : !t, !t) outs(%1 : !t) -> !t
  %3 = linalg.matmul ins(%2, %w : !t, !t) outs(%2 : !t) -> !t
  return %3 : !t
}

// An input that two devices want, and a transfer back. IREE: all is on dev_a, the round trip is folded away.
// CHECK-LABEL: func.func @shared_input(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<64x64xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Z:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[Y]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[Y]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[Z]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V4:.*]] = arith.addf %[[V0]], %[[V1]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V5:.*]] = arith.mulf %[[V2]], %[[V3]] {device.scope = #opencl1}
// CHECK-NEXT:    %[[V6:.*]] = device.device_copy %[[V5]] from #opencl1 to #opencl0
// CHECK-NEXT:    %[[V7:.*]] = arith.subf %[[V4]], %[[V6]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V8:.*]] = device.device_copy %[[V7]] from #opencl0 to #cpu0
// CHECK-NEXT:    return %[[V8]]
// CHECK-NEXT:  }
func.func @shared_input(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  %1 = "device.on_device"(%0) {scope = #a} : (!t) -> !t
  %2 = arith.mulf %y, %z : !t
  %3 = "device.on_device"(%2) {scope = #b} : (!t) -> !t
  %4 = "device.device_copy"(%3) {src = #b, dst = #a} : (!t) -> !t
  %5 = arith.subf %1, %4 : !t
  return %5 : !t
}

// Branches on two devices. IREE: the value that they join in is allocated where the runtime finds best, and the
// operation after it has no place. Here: the value is where the operation after it is.
// CHECK-LABEL: func.func @if_else(
// CHECK-SAME:    %[[P:\w+]]: i1, %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = scf.if %[[P]] -> (tensor<64x64xf32>) {
// CHECK-NEXT:      %[[V3:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:      %[[V4:.*]] = math.exp %[[V3]] {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield %[[V4]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[V3:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl1
// CHECK-NEXT:      %[[V4:.*]] = math.tanh %[[V3]] {device.scope = #opencl1}
// CHECK-NEXT:      %[[V5:.*]] = device.device_copy %[[V4]] from #opencl1 to #opencl0
// CHECK-NEXT:      scf.yield %[[V5]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V1:.*]] = math.sqrt %[[V0]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #opencl0 to #cpu0
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @if_else(%p: i1, %x: !t) -> !t {
  %0 = scf.if %p -> (!t) {
    %1 = math.exp %x {device.scope = #a} : !t
    scf.yield %1 : !t
  } else {
    %1 = math.tanh %x {device.scope = #b} : !t
    scf.yield %1 : !t
  }
  %2 = math.sqrt %0 : !t
  return %2 : !t
}

// A function called from two devices that is not inlined. IREE: one function, on dev_a for both calls.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[V0:.*]] = math.tanh %[[X]] {device.scope = #opencl0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
// CHECK-LABEL: func.func private @layer_opencl_1(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #opencl1})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #opencl1})
// CHECK-NEXT:    %[[V0:.*]] = math.tanh %[[X]] {device.scope = #opencl1}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @layer(%x: !t) -> !t attributes {noinline} {
  %0 = math.tanh %x : !t
  return %0 : !t
}
// CHECK-LABEL: func.func @called_from_two_devices(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0}, tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[V2:.*]] = call @layer(%[[V0]])
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[V4:.*]] = call @layer_opencl_1(%[[V1]])
// CHECK-NEXT:    %[[V5:.*]] = device.device_copy %[[V4]] from #opencl1 to #cpu0
// CHECK-NEXT:    return %[[V3]], %[[V5]]
// CHECK-NEXT:  }
func.func @called_from_two_devices(%x: !t) -> (!t, !t) {
  %0 = func.call @layer(%x) : (!t) -> !t
  %1 = "device.on_device"(%0) {scope = #a} : (!t) -> !t
  %2 = func.call @layer(%x) : (!t) -> !t
  %3 = "device.on_device"(%2) {scope = #b} : (!t) -> !t
  return %1, %3 : !t, !t
}

// Function values. IREE: "failed to legalize operation 'func.constant'".
// CHECK-LABEL: func.func private @on_b(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #opencl1})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = math.exp %[[X]] {device.scope = #opencl1}
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #opencl1 to #cpu0
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func private @on_b(%x: !t) -> !t {
  %0 = math.exp %x {device.scope = #b} : !t
  return %0 : !t
}
// CHECK-LABEL: func.func @higher_order(
// CHECK-SAME:    %[[X:\w+]]: tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<64x64xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #opencl1
// CHECK-NEXT:    %[[F:.*]] = constant @on_b
// CHECK-NEXT:    %[[V1:.*]] = call_indirect %[[F]](%[[V0]])
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @higher_order(%x: !t) -> !t {
  %f = func.constant @on_b : (!t) -> !t
  %0 = func.call_indirect %f(%x) : (!t) -> !t
  return %0 : !t
}
