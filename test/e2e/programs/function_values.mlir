// Functions as values: chosen by data, carried by loops and blocks, passed on and returned, called in kernels. The
// first three are of TVM's planner tests (test_pass_plan_devices.py).
#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
#id = affine_map<(i) -> (i)>
!t = tensor<?xf32>
!unary = (!t) -> !t
!binary = (!t, !t) -> !t
!pair = (!t, !t) -> (!t, !t)
!scalar = (f32) -> f32

func.func private @neg(%x: !t) -> !t {
  %0 = arith.negf %x : !t
  return %0 : !t
}
func.func private @sin(%x: !t) -> !t {
  %0 = math.sin %x {device.scope = #dev} : !t
  return %0 : !t
}
func.func private @exp(%x: !t) -> !t {
  %0 = math.exp %x : !t
  return %0 : !t
}
func.func private @add(%a: !t, %b: !t) -> !t {
  %0 = "device.on_device"(%b) {scope = #cpu, constrain_result = true} : (!t) -> !t
  %1 = arith.addf %a, %0 : !t
  return %1 : !t
}
func.func private @sub(%a: !t, %b: !t) -> !t {
  %0 = arith.subf %a, %b : !t
  return %0 : !t
}

// test_higher_order
func.func private @higher_order_inner(%g: !unary, %x: !t, %a: !t) -> !t {
  %0 = "device.on_device"(%a) {scope = #cpu} : (!t) -> !t
  %1 = func.call_indirect %g(%0) : (!t) -> !t
  %2 = arith.addf %1, %x {device.scope = #dev} : !t
  return %2 : !t
}
func.func @higher_order(%x: !t, %y: !t) -> !t {
  %h = func.constant @neg : !unary
  %f = func.constant @higher_order_inner : (!unary, !t, !t) -> !t
  %0 = func.call_indirect %f(%h, %x, %y) : (!unary, !t, !t) -> !t
  %1 = arith.subf %x, %0 : !t
  return %1 : !t
}
// test_function_in_tuple, without the tuple
func.func @beside(%x: !t, %y: !t) -> !t {
  %f = func.constant @add : !binary
  %0 = func.call_indirect %f(%x, %y) : !binary
  return %0 : !t
}
// test_conditional
func.func @conditional(%x: i1, %y: !t, %z: !t) -> !t {
  %f = func.constant @add : !binary
  %g = func.constant @sub : !binary
  %h = scf.if %x -> (!binary) {
    scf.yield %f : !binary
  } else {
    scf.yield %g : !binary
  }
  %0 = func.call_indirect %h(%z, %y) : !binary
  return %0 : !t
}

// A function that each iteration hands to the next, and one that the data chooses.
func.func @carried(%x: !t, %n: index, %p: i1) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = func.constant @sin : !unary
  %g = func.constant @neg : !unary
  %e = func.constant @exp : !unary
  %first = arith.select %p, %f, %g : !unary
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%this = %first, %next = %e, %v = %x) -> (!unary, !unary, !t) {
    %0 = func.call_indirect %this(%v) : !unary
    scf.yield %next, %this, %0 : !unary, !unary, !t
  }
  %1 = func.call_indirect %r#0(%r#2) : !unary
  return %1 : !t
}
func.func @while(%x: !t, %limit: f32) -> (!t, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %f = func.constant @sin : !unary
  %g = func.constant @neg : !unary
  %r:3 = scf.while (%this = %f, %v = %x, %i = %c0) : (!unary, !t, index) -> (!unary, !t, index) {
    %more = arith.cmpi ult, %i, %c6 : index
    scf.condition(%more) %this, %v, %i : !unary, !t, index
  } do {
  ^bb0(%this: !unary, %v: !t, %i: index):
    %0 = func.call_indirect %this(%v) : !unary
    %element = tensor.extract %0[%c0] : !t
    %low = arith.cmpf olt, %element, %limit : f32
    %next = arith.select %low, %g, %f : !unary
    %j = arith.addi %i, %c1 : index
    scf.yield %next, %0, %j : !unary, !t, index
  }
  return %r#1, %r#2 : !t, index
}
func.func @blocks(%x: !t, %n: i32) -> !t {
  %f = func.constant @sin : !unary
  %g = func.constant @neg : !unary
  %h = func.constant @exp : !unary
  cf.switch %n : i32, [
    default: ^call(%h, %x : !unary, !t),
    0: ^call(%f, %x : !unary, !t),
    1: ^again(%g : !unary)
  ]
^again(%k: !unary):
  %0 = func.call_indirect %k(%x) : !unary
  cf.br ^call(%f, %0 : !unary, !t)
^call(%this: !unary, %v: !t):
  %1 = func.call_indirect %this(%v) : !unary
  return %1 : !t
}

// Functions of functions, which also return some; public ones are no entries.
func.func private @choose(%which: index, %f: !unary) -> !unary {
  %g = func.constant @exp : !unary
  %h = func.constant @neg : !unary
  %0 = scf.index_switch %which -> !unary
  case 0 {
    scf.yield %f : !unary
  }
  case 1 {
    scf.yield %g : !unary
  }
  default {
    scf.yield %h : !unary
  }
  return %0 : !unary
}
func.func @twice(%choose: (index, !unary) -> !unary, %which: index, %f: !unary, %x: !t) -> !t {
  %g = func.call_indirect %choose(%which, %f) : (index, !unary) -> !unary
  %0 = func.call_indirect %g(%x) : !unary
  %1 = func.call_indirect %g(%0) : !unary
  return %1 : !t
}
func.func @nested(%x: !t, %which: index) -> !t {
  %choose = func.constant @choose : (index, !unary) -> !unary
  %f = func.constant @sin : !unary
  %twice = func.constant @twice : ((index, !unary) -> !unary, index, !unary, !t) -> !t
  %0 = func.call_indirect %twice(%choose, %which, %f, %x)
    : ((index, !unary) -> !unary, index, !unary, !t) -> !t
  return %0 : !t
}

// Several results, on several devices.
func.func private @two(%x: !t, %y: !t) -> (!t, !t) {
  %0 = math.sin %x {device.scope = #dev} : !t
  %1 = math.cos %y {device.scope = #dev1} : !t
  return %0, %1 : !t, !t
}
func.func private @swap(%x: !t, %y: !t) -> (!t, !t) {
  return %y, %x : !t, !t
}
func.func private @apply(%f: !pair, %x: !t, %y: !t) -> (!t, !t) {
  %0:2 = func.call_indirect %f(%x, %y) : !pair
  return %0#0, %0#1 : !t, !t
}
func.func @results(%p: i1, %x: !t, %y: !t) -> (!t, !t) {
  %f = func.constant @two : !pair
  %g = func.constant @swap : !pair
  %h = arith.select %p, %f, %g : !pair
  %0:2 = call @apply(%h, %x, %y) : (!pair, !t, !t) -> (!t, !t)
  %1:2 = call @apply(%g, %0#0, %0#1) : (!pair, !t, !t) -> (!t, !t)
  return %1#0, %1#1 : !t, !t
}

// A recursive function that passes itself on.
func.func private @run(%f: (!t, index) -> !t, %n: index, %x: !t) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.cmpi eq, %n, %c0 : index
  %0 = scf.if %end -> !t {
    scf.yield %x : !t
  } else {
    %m = arith.subi %n, %c1 : index
    %1 = func.call_indirect %f(%x, %m) : (!t, index) -> !t
    scf.yield %1 : !t
  }
  return %0 : !t
}
func.func private @step(%x: !t, %n: index) -> !t {
  %g = func.constant @step : (!t, index) -> !t
  %0 = math.cos %x {device.scope = #dev} : !t
  %1 = call @run(%g, %n, %0) : ((!t, index) -> !t, index, !t) -> !t
  return %1 : !t
}
func.func @recursive(%x: !t, %n: index) -> !t {
  %0 = call @step(%x, %n) : (!t, index) -> !t
  return %0 : !t
}

// Scalar functions in kernels: the same for all elements, and chosen for each.
func.func private @square(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  return %0 : f32
}
func.func private @half(%x: f32) -> f32 {
  %c = arith.constant 0.5 : f32
  %0 = arith.mulf %x, %c : f32
  return %0 : f32
}
func.func private @often(%f: !scalar, %x: f32) -> f32 {
  %0 = func.call_indirect %f(%x) : !scalar
  %1 = func.call_indirect %f(%0) : !scalar
  return %1 : f32
}
func.func private @map(%f: !scalar, %x: !t) -> !t {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : !t
  %empty = tensor.empty(%n) : !t
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : !t) outs(%empty : !t) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32):
    %1 = func.call_indirect %f(%a) : !scalar
    linalg.yield %1 : f32
  } -> !t
  return %0 : !t
}
func.func @kernels(%x: !t, %p: i1) -> (!t, !t, !t) {
  %f = func.constant @square : !scalar
  %g = func.constant @half : !scalar
  %0 = call @map(%f, %x) : (!scalar, !t) -> !t
  %h = arith.select %p, %f, %g : !scalar
  %1 = call @map(%h, %x) : (!scalar, !t) -> !t
  %zero = arith.constant 0.0 : f32
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : !t) outs(%x : !t) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32):
    %low = arith.cmpf olt, %a, %zero : f32
    %k = scf.if %low -> (!scalar) {
      scf.yield %f : !scalar
    } else {
      scf.yield %h : !scalar
    }
    %3 = func.call @often(%k, %a) : (!scalar, f32) -> f32
    linalg.yield %3 : f32
  } -> !t
  return %0, %1, %2 : !t, !t, !t
}
