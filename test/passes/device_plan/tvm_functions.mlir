// TVM's planner tests, https://github.com/apache/tvm tests/python/relay/test_pass_plan_devices.py: functions.
// RUN: devscope-opt %s -p 'device-plan{default=cuda:0},device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan{default=cuda:0}' > %t.twice
// RUN: diff %t.once %t.twice

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"cuda", 0 : i64, "", "">
#any_global = #device.scope<"", -1 : i64, "", "global">
#any_texture = #device.scope<"", -1 : i64, "", "texture">
!t = tensor<5x7xf32>
!fn1 = (!t) -> !t
!fn2 = (!t, !t) -> !t
!pair = tuple<!fn2, !t>

// test_func_param_on_cpu: what a function returns is fixed by an annotation, so that callers follow. No copy.
// CHECK-LABEL: func.func private @func_param_f(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @func_param_f(%x: !t, %y: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  func.return %1 : !t
}
// CHECK-LABEL: func.func @func_param_on_cpu(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = call @func_param_f(%[[A]], %[[B]])
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[C]], %[[D]]
// CHECK-NEXT:    %[[V2:.*]] = arith.subf %[[V0]], %[[V1]]
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @func_param_on_cpu(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = func.call @func_param_f(%a, %b) : (!t, !t) -> !t
  %1 = arith.addf %c, %d : !t
  %2 = arith.subf %0, %1 : !t
  func.return %2 : !t
}

// test_func_result_on_cpu: an annotated call places the function.
// CHECK-LABEL: func.func private @func_result_f(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @func_result_f(%x: !t, %y: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func @func_result_on_cpu(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = call @func_result_f(%[[A]], %[[B]])
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @func_result_on_cpu(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = func.call @func_result_f(%a, %b) : (!t, !t) -> !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %c, %d : !t
  %3 = arith.subf %1, %2 : !t
  func.return %3 : !t
}

// test_higher_order: through two function values, the copy is in the innermost function.
// CHECK-LABEL: func.func private @higher_order_inner(
// CHECK-SAME:    %[[G:\w+]]: (tensor<5x7xf32>) -> tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[A]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = call_indirect %[[G]](%[[V0]])
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[V1]], %[[X]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func private @higher_order_inner(%g: !fn1, %x: !t, %a: !t) -> !t {
  %0 = "device.on_device"(%a) {scope = #cpu} : (!t) -> !t
  %1 = "func.call_indirect"(%g, %0) : (!fn1, !t) -> !t
  %2 = arith.addf %1, %x : !t
  func.return %2 : !t
}
// CHECK-LABEL: func.func private @higher_order_h(
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.negf %[[B]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @higher_order_h(%b: !t) -> !t {
  %0 = arith.negf %b : !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func @higher_order(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[F:.*]] = constant @higher_order_h
// CHECK-NEXT:    %[[F_0:.*]] = constant @higher_order_inner
// CHECK-NEXT:    %[[V0:.*]] = call_indirect %[[F_0]](%[[F]], %[[X]], %[[Y]])
// CHECK-NEXT:    %[[V1:.*]] = arith.subf %[[X]], %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @higher_order(%x: !t, %y: !t) -> !t {
  %h = "func.constant"() {value = @higher_order_h} : () -> !fn1
  %f = "func.constant"() {value = @higher_order_inner} : () -> ((!fn1, !t, !t) -> !t)
  %0 = "func.call_indirect"(%f, %h, %x, %y) : ((!fn1, !t, !t) -> !t, !fn1, !t, !t) -> !t
  %1 = arith.subf %x, %0 : !t
  func.return %1 : !t
}

// test_function_in_tuple: what an aggregate holds is on one scope, a function with its whole signature.
// CHECK-LABEL: func.func private @function_in_tuple_f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @function_in_tuple_f(%a: !t, %b: !t) -> !t {
  %0 = "device.on_device"(%b) {scope = #cpu} : (!t) -> !t
  %1 = arith.addf %a, %0 : !t
  func.return %1 : !t
}
// CHECK-LABEL: func.func @function_in_tuple(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[F:.*]] = constant @function_in_tuple_f
// CHECK-NEXT:    %[[V0:.*]] = "rt.tuple"(%[[F]], %[[X]])
// CHECK-NEXT:    %[[V1:.*]] = "rt.tuple_get"(%[[V0]]) {index = 1 : i64}
// CHECK-NEXT:    %[[V2:.*]] = "rt.tuple_get"(%[[V0]]) {index = 0 : i64}
// CHECK-NEXT:    %[[V3:.*]] = call_indirect %[[V2]](%[[V1]], %[[Y]])
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @function_in_tuple(%x: !t, %y: !t) -> !t {
  %f = "func.constant"() {value = @function_in_tuple_f} : () -> !fn2
  %t = "rt.tuple"(%f, %x) : (!fn2, !t) -> !pair
  %1 = "rt.tuple_get"(%t) {index = 1} : (!pair) -> !t
  %2 = "rt.tuple_get"(%t) {index = 0} : (!pair) -> !fn2
  %3 = "func.call_indirect"(%2, %1, %y) : (!fn2, !t, !t) -> !t
  func.return %3 : !t
}

// The same without the aggregate is finer: only %b is on the CPU, and the copy is in the function.
// CHECK-LABEL: func.func private @function_beside_f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func private @function_beside_f(%a: !t, %b: !t) -> !t {
  %0 = "device.on_device"(%b) {scope = #cpu} : (!t) -> !t
  %1 = arith.addf %a, %0 : !t
  func.return %1 : !t
}
// CHECK-LABEL: func.func @function_beside(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[F:.*]] = constant @function_beside_f
// CHECK-NEXT:    %[[V0:.*]] = call_indirect %[[F]](%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @function_beside(%x: !t, %y: !t) -> !t {
  %f = "func.constant"() {value = @function_beside_f} : () -> !fn2
  %0 = "func.call_indirect"(%f, %x, %y) : (!fn2, !t, !t) -> !t
  func.return %0 : !t
}

// test_global: so is a plain call.
// CHECK-LABEL: func.func private @global_f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[V0]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func private @global_f(%a: !t, %b: !t) -> !t {
  %0 = "device.on_device"(%b) {scope = #cpu} : (!t) -> !t
  %1 = arith.addf %a, %0 : !t
  func.return %1 : !t
}
// CHECK-LABEL: func.func @global(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = call @global_f(%[[Y]], %[[X]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @global(%x: !t, %y: !t) -> !t {
  %0 = func.call @global_f(%y, %x) : (!t, !t) -> !t
  func.return %0 : !t
}

// test_conditional: the functions that a branch chooses from are one. TVM puts the condition there, too.
// CHECK-LABEL: func.func private @conditional_f(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[Y]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @conditional_f(%a: !t, %y: !t) -> !t {
  %0 = "device.on_device"(%y) {scope = #cpu, constrain_result = true} : (!t) -> !t
  %1 = arith.addf %a, %0 : !t
  func.return %1 : !t
}
// CHECK-LABEL: func.func private @conditional_g(
// CHECK-SAME:    %[[A1:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.subf %[[A1]], %[[Y]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @conditional_g(%a1: !t, %y: !t) -> !t {
  %0 = arith.subf %a1, %y : !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func @conditional(
// CHECK-SAME:    %[[X:\w+]]: i1, %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Z:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[F:.*]] = constant @conditional_f
// CHECK-NEXT:    %[[F_0:.*]] = constant @conditional_g
// CHECK-NEXT:    %[[V0:.*]] = scf.if %[[X]] -> ((tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>) {
// CHECK-NEXT:      scf.yield %[[F]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[F_0]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V1:.*]] = call_indirect %[[V0]](%[[Z]], %[[Y]])
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @conditional(%x: i1, %y: !t, %z: !t) -> !t {
  %f = "func.constant"() {value = @conditional_f} : () -> !fn2
  %g = "func.constant"() {value = @conditional_g} : () -> !fn2
  %h = scf.if %x -> (!fn2) {
    scf.yield %f : !fn2
  } else {
    scf.yield %g : !fn2
  }
  %0 = "func.call_indirect"(%h, %z, %y) : (!fn2, !t, !t) -> !t
  func.return %0 : !t
}

// test_primitive: attributes of such functions count, their bodies are nobody's business.
// CHECK-LABEL: func.func private @p0(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_global})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0_global}) attributes {device.primitive}
// CHECK-NEXT:    %[[V0:.*]] = "ml.layout_transform"(%[[A]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @p0(%a: !t) -> !t attributes {device.primitive} {
  %0 = "ml.layout_transform"(%a) : (!t) -> !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func private @p5(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_global},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_global})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0_texture}) attributes {device.primitive}
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @p5(%a: !t {device.scope = #any_global}, %b: !t {device.scope = #any_global})
    -> (!t {device.scope = #any_texture}) attributes {device.primitive} {
  %0 = arith.addf %a, %b : !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func private @p10(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_texture})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0_global}) attributes {device.primitive}
// CHECK-NEXT:    %[[V0:.*]] = "ml.layout_transform"(%[[A]])
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func private @p10(%a: !t) -> (!t {device.scope = #any_global}) attributes {device.primitive} {
  %0 = "ml.layout_transform"(%a) : (!t) -> !t
  func.return %0 : !t
}
// CHECK-LABEL: func.func @primitive(
// CHECK-SAME:    %[[DATA1:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_global},
// CHECK-SAME:    %[[DATA2:\w+]]: tensor<5x7xf32> {device.scope = #cuda0_global})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0_global})
// CHECK-NEXT:    %[[V0:.*]] = call @p0(%[[DATA1]])
// CHECK-NEXT:    %[[V1:.*]] = call @p0(%[[DATA2]])
// CHECK-NEXT:    %[[V2:.*]] = call @p5(%[[V0]], %[[V1]])
// CHECK-NEXT:    %[[V3:.*]] = call @p10(%[[V2]])
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @primitive(%data1: !t, %data2: !t) -> !t {
  %1 = func.call @p0(%data1) : (!t) -> !t
  %3 = func.call @p0(%data2) : (!t) -> !t
  %6 = func.call @p5(%1, %3) : (!t, !t) -> !t
  %10 = func.call @p10(%6) : (!t) -> !t
  func.return %10 : !t
}
