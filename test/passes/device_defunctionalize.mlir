// RUN: devscope-opt %s --split-input-file -p device-plan,device-defunctionalize,device-verify | filecheck %s
// RUN: devscope-opt %s --split-input-file -p device-plan,device-split,device-verify,device-verify-split | filecheck %s --check-prefix SPLIT
// SPLIT-NOT: {{constant @|call_indirect}}

// What is known is called by its name: constants, what branches agree on, what calls return. Callers that pass
// different functions call different clones, through any number of calls; nobody is left to call the original.
// CHECK-LABEL: module
// CHECK-NOT:   constant @
// CHECK-NOT:   call_indirect
// CHECK:       func.func private @sin(
// CHECK:       func.func private @cos(
// CHECK:       func.func private @outer_cos(
// CHECK:         call @inner_cos(
// CHECK:       func.func private @outer_sin(
// CHECK:         call @inner_sin(
// CHECK:       func.func private @inner_cos(%{{.*}}: index, %{{.*}}: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    call @cos(
// CHECK:       func.func private @inner_sin(%{{.*}}: index, %{{.*}}: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    call @sin(
// CHECK:       func.func @main(
// CHECK:         call @outer_sin(
// CHECK:         call @outer_cos(
// CHECK:         call @cos(
// CHECK-NOT:   func.func
#dev = #device.scope<"opencl", 0 : i64, "", "">
!t = tensor<4xf32>
!f = (!t) -> !t
func.func private @sin(%x: !t) -> !t {
  %0 = math.sin %x {device.scope = #dev} : !t
  return %0 : !t
}
func.func private @cos(%x: !t) -> !t {
  %0 = math.cos %x {device.scope = #dev} : !t
  return %0 : !t
}
func.func private @outer(%f: !f, %x: !t) -> !t {
  %0 = call @inner(%f, %x) : (!f, !t) -> !t
  return %0 : !t
}
func.func private @inner(%f: !f, %x: !t) -> !t {
  %0 = func.call_indirect %f(%x) : !f
  return %0 : !t
}
func.func private @make() -> !f {
  %f = func.constant @cos : !f
  return %f : !f
}
func.func @main(%x: !t, %p: i1) -> !t {
  %sin = func.constant @sin : !f
  %cos = func.call @make() : () -> !f
  %outer = func.constant @outer : (!f, !t) -> !t
  %0 = func.call_indirect %outer(%sin, %x) : (!f, !t) -> !t
  %1 = func.call_indirect %outer(%cos, %0) : (!f, !t) -> !t
  %f = scf.if %p -> !f {
    %g = func.constant @cos : !f
    scf.yield %g : !f
  } else {
    scf.yield %cos : !f
  }
  %2 = func.call_indirect %f(%1) : !f
  return %2 : !t
}

// -----

// What is chosen while the program runs is a number. Nobody outside calls what takes or returns a function.
// CHECK-LABEL: module
// CHECK:       func.func private @choose(%{{.*}}: i1) -> index
// CHECK-NEXT:    %[[F:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[G:.*]] = arith.constant 2 : index
// CHECK-NEXT:    arith.select %{{.*}}, %[[F]], %[[G]] : index
// CHECK:       func.func private @apply(%[[NUMBER:.*]]: index, %[[X:.*]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    scf.index_switch %[[NUMBER]] -> tensor<4xf32>
// CHECK-NEXT:    case 0 {
// CHECK-NEXT:      %[[V0:.*]] = func.call @f(%[[X]])
// CHECK-NEXT:      scf.yield %[[V0]]
// CHECK-NEXT:    }
// CHECK-NEXT:    default {
// CHECK-NEXT:      %[[V1:.*]] = func.call @g(%[[X]])
// CHECK-NEXT:      scf.yield %[[V1]]
// CHECK-NEXT:    }
// CHECK:       func.func @main(
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (index, tensor<4xf32>)
// CHECK:           scf.index_switch %{{.*}} -> tensor<4xf32>
// CHECK-NEXT:      case 0 {
// CHECK:           case 1 {
// CHECK-NEXT:        func.call @other
// CHECK:           default {
#dev = #device.scope<"opencl", 0 : i64, "", "">
!t = tensor<4xf32>
!f = (!t) -> !t
func.func private @f(%x: !t) -> !t {
  %0 = math.sin %x {device.scope = #dev} : !t
  return %0 : !t
}
func.func private @other(%x: !t) -> !t {
  return %x : !t
}
func.func private @g(%x: !t) -> !t {
  %0 = math.cos %x {device.scope = #dev} : !t
  return %0 : !t
}
func.func @choose(%p: i1) -> !f {
  %f = func.constant @f : !f
  %g = func.constant @g : !f
  %0 = "arith.select"(%p, %f, %g) {device.scope = #dev} : (i1, !f, !f) -> !f
  return %0 : !f
}
func.func @apply(%f: !f {device.scope = #dev}, %x: !t) -> !t {
  %0 = func.call_indirect %f(%x) : !f
  return %0 : !t
}
func.func @main(%p: i1, %x: !t, %n: index) -> !t {
  %0 = call @choose(%p) : (i1) -> !f
  %1 = call @apply(%0, %x) : (!f, !t) -> !t
  %2 = func.constant @other : !f
  %3:2 = scf.for %i = %n to %n step %n iter_args(%k = %2, %v = %1) -> (!f, !t) {
    %4 = func.call_indirect %k(%v) : !f
    scf.yield %0, %4 : !f, !t
  }
  return %3#1 : !t
}

// -----

// A function that is a value, but called by nobody, and what only it calls, are not there any more.
// CHECK-LABEL: module
// CHECK-NOT:   @idle
// CHECK:       func.func @main
// CHECK-NEXT:    arith.constant 0 : index
// CHECK-NEXT:    call @takes(
!f = () -> ()
func.func private @idle(%f: !f) {
  func.call_indirect %f() : !f
  return
}
func.func private @takes(%f: (!f) -> ()) {
  return
}
func.func @main() {
  %f = func.constant @idle : (!f) -> ()
  call @takes(%f) : ((!f) -> ()) -> ()
  return
}

// -----

// A kernel calls by name; what it captures is a number, and its callee has no scope of its own.
// CHECK-LABEL: module
// CHECK:       linalg.generic
// CHECK:         scf.index_switch %{{.*}} -> f32
// CHECK:           func.call @half
// CHECK:         func.call @half
#dev = #device.scope<"opencl", 0 : i64, "", "">
!s = (f32) -> f32
func.func private @half(%x: f32) -> f32 {
  return %x : f32
}
func.func private @one(%x: f32) -> f32 {
  return %x : f32
}
func.func @main(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %f = func.constant @half : !s
  %g = func.constant @one : !s
  %h = arith.select %p, %f, %g : !s
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<4xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32):
    %1 = func.call_indirect %h(%a) : !s
    %2 = func.call_indirect %f(%1) : !s
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Without function values nothing changes: not even what nobody calls.
// CHECK-LABEL: module
// CHECK:       func.func private @unused
func.func private @unused() {
  return
}
func.func @main() {
  return
}

// -----

// @once, which calls @apply with @f, is cloned, and gone with its own clone of that; its clones have another one.
// CHECK-LABEL: module
// CHECK:       func.func @main(
// CHECK:         call @once_f(
// CHECK:         call @once_g(
// CHECK:         call @apply(
// CHECK:       func.func private @once_g(
// CHECK:         call @[[APPLY:[a-z_0-9]+]](
// CHECK:       func.func private @once_f(
// CHECK:         call @[[APPLY]](
// CHECK:       func.func private @[[APPLY]](
// CHECK-NEXT:    call @f(
!f = (f32) -> f32
func.func @main(%x: f32, %p: i1) -> f32 {
  %f = func.constant @f : !f
  %g = func.constant @g : !f
  %either = arith.select %p, %f, %g : !f
  %0 = func.call @once(%f, %x) : (!f, f32) -> f32
  %1 = func.call @once(%g, %0) : (!f, f32) -> f32
  %2 = func.call @apply(%either, %1) : (!f, f32) -> f32
  return %2 : f32
}
func.func private @once(%f: !f, %x: f32) -> f32 {
  %g = func.constant @f : !f
  %0 = func.call @apply(%g, %x) : (!f, f32) -> f32
  %1 = func.call_indirect %f(%0) : !f
  return %1 : f32
}
func.func private @apply(%f: !f, %x: f32) -> f32 {
  %0 = func.call_indirect %f(%x) : !f
  return %0 : f32
}
func.func private @f(%x: f32) -> f32 {
  return %x : f32
}
func.func private @g(%x: f32) -> f32 {
  %0 = arith.negf %x : f32
  return %0 : f32
}
