// What TVM's planner gets wrong, refuses or aborts on.
// RUN: devscope-opt %s -p 'device-plan{default=cuda:0},device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan{default=cuda:0}' > %t.twice
// RUN: diff %t.once %t.twice

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"cuda", 0 : i64, "", "">
#gpu_tex = #device.scope<"cuda", 0 : i64, "", "texture">
!t = tensor<5x7xf32>

// TVM: internal check failure, a copy to nowhere. One copy of %b serves both its users on the GPU.
// CHECK-LABEL: func.func @third_unannotated_use(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[V0]], %[[C]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V2]], %[[V3]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V5:.*]] = arith.addf %[[V0]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V6:.*]] = arith.mulf %[[V4]], %[[V5]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V6]]
// CHECK-NEXT:  }
func.func @third_unannotated_use(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %b, %c : !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %1, %3 : !t
  %5 = arith.addf %b, %d : !t
  %6 = arith.mulf %4, %5 : !t
  func.return %6 : !t
}

// TVM: internal check failure. The first annotation of an argument says where it is, the second is a copy.
// CHECK-LABEL: func.func @direct_double_annotation(
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.subf %[[V0]], %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @direct_double_annotation(%b: !t) -> !t {
  %0 = "device.on_device"(%b) {scope = #cpu} : (!t) -> !t
  %1 = "device.on_device"(%b) {scope = #gpu} : (!t) -> !t
  %2 = arith.subf %0, %1 : !t
  func.return %2 : !t
}

// TVM: the annotation is dropped, all is on the GPU.
// CHECK-LABEL: func.func @alias_annotation_lost(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    return %[[X]]
// CHECK-NEXT:  }
func.func @alias_annotation_lost(%x: !t) -> !t {
  %0 = "device.on_device"(%x) {scope = #cpu} : (!t) -> !t
  func.return %0 : !t
}

// TVM: %a gets the GPU's memory scope on the CPU.
// CHECK-LABEL: func.func @scope_leak(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_texture})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0_texture})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[A]] from #cpu0 to #cuda0_texture
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[V0]], %[[B]] {device.scope = #cuda0_texture}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @scope_leak(%a: !t, %b: !t) -> (!t {device.scope = #gpu_tex}) {
  %0 = "device.device_copy"(%a) {src = #cpu, dst = #gpu_tex} : (!t) -> !t
  %1 = arith.addf %0, %b : !t
  func.return %1 : !t
}

// TVM: both arms are right, but the condition is forced to the GPU. It is a scalar, and on the host.
// CHECK-LABEL: func.func @arms_differ(
// CHECK-SAME:    %[[P:\w+]]: i1, %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = scf.if %[[P]] -> (tensor<5x7xf32>) {
// CHECK-NEXT:      %[[V1:.*]] = arith.negf %[[X]]
// CHECK-NEXT:      %[[V2:.*]] = device.device_copy %[[V1]] from #cpu0 to #cuda0
// CHECK-NEXT:      scf.yield %[[V2]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[V1:.*]] = arith.negf %[[Y]] {device.scope = #cuda0}
// CHECK-NEXT:      scf.yield %[[V1]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @arms_differ(%p: i1, %x: !t, %y: !t) -> !t {
  %0 = scf.if %p -> (!t) {
    %1 = arith.negf %x : !t
    %2 = "device.on_device"(%1) {scope = #cpu} : (!t) -> !t
    scf.yield %2 : !t
  } else {
    %3 = arith.negf %y : !t
    %4 = "device.on_device"(%3) {scope = #gpu} : (!t) -> !t
    scf.yield %4 : !t
  }
  func.return %0 : !t
}

// TVM: error, since the conflict over %b comes from a sibling, %d, and not from the annotated operation.
// CHECK-LABEL: func.func @sibling_constraint(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[V0]], %[[C]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V2]], %[[V3]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @sibling_constraint(%a: !t, %b: !t, %c: !t) -> !t {
  %0 = "device.on_device"(%c) {scope = #gpu, constrain_result = true} : (!t) -> !t
  %1 = arith.addf %a, %b : !t
  %2 = "device.on_device"(%1) {scope = #cpu} : (!t) -> !t
  %3 = arith.addf %b, %0 : !t
  %4 = arith.subf %2, %3 : !t
  func.return %4 : !t
}

// TVM: the repair takes the operands of a call for operands of an operation, and adds copies that break it.
// CHECK-LABEL: func.func private @mixed_param_callee_f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.negf %[[A]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[V1]], %[[B]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func private @mixed_param_callee_f(%a: !t, %b: !t) -> !t {
  %0 = arith.negf %a : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %1, %b : !t
  func.return %2 : !t
}
// CHECK-LABEL: func.func @mixed_param_callee(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = call @mixed_param_callee_f(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @mixed_param_callee(%x: !t, %y: !t) -> !t {
  %0 = func.call @mixed_param_callee_f(%x, %y) : (!t, !t) -> !t
  func.return %0 : !t
}

// TVM: error, a function is on one scope. There is one for each here.
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.negf %[[A]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
// CHECK-LABEL: func.func private @f_cuda_0(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.negf %[[A]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @f(%a: !t) -> !t {
  %0 = arith.negf %a : !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func @two_call_sites(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = call @f(%[[X]])
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = call @f_cuda_0(%[[Y]])
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @two_call_sites(%x: !t, %y: !t) -> !t {
  %0 = func.call @f(%x) : (!t) -> !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = func.call @f(%y) : (!t) -> !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %1, %3 : !t
  func.return %4 : !t
}
