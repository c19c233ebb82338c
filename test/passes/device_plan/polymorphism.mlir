// A function is planned once per distinct assignment of scopes to its signature: the function itself for the first,
// clones for the others. TVM and IREE plan one copy for all callers, or report a clash.
// RUN: devscope-opt %s --split-input-file -p 'device-plan,device-verify' | filecheck %s
// RUN: devscope-opt %s --split-input-file -p 'device-plan' > %t.once
// RUN: devscope-opt %t.once --split-input-file -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

// Calls with equal scopes share a clone; a function called by clones is cloned with them.
// CHECK-LABEL: module
// CHECK:       func.func private @inner(%{{.*}} {device.scope = #cpu0}) -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    math.exp %{{[^ ]*}} : tensor
// CHECK:       func.func private @inner_cuda_0(%{{.*}} {device.scope = #cuda0}) -> (tensor<4xf32> {device.scope = #cuda0})
// CHECK-NEXT:    math.exp %{{.*}} {device.scope = #cuda0}
// CHECK:       func.func private @outer(
// CHECK-NEXT:    call @inner_cuda_0(
// CHECK:       func.func private @outer_cpu_0(
// CHECK-NEXT:    call @inner(
// CHECK:       func.func @main(
// CHECK-NOT:     device_copy
// CHECK:         call @outer(%arg0)
// CHECK-NEXT:    call @outer_cpu_0(%arg1)
// CHECK-NEXT:    call @inner(%arg1)
// CHECK-NEXT:    call @outer(%arg0)
// CHECK-NEXT:    return
#gpu = #device.scope<"cuda", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @inner(%a: !t) -> !t {
  %0 = math.exp %a : !t
  return %0 : !t
}
func.func private @outer(%a: !t) -> !t {
  %0 = call @inner(%a) : (!t) -> !t
  return %0 : !t
}
func.func @main(%x: !t {device.scope = #gpu}, %y: !t {device.scope = #cpu}) -> (!t, !t, !t, !t) {
  %0 = call @outer(%x) : (!t) -> !t
  %1 = call @outer(%y) : (!t) -> !t
  %2 = call @inner(%y) : (!t) -> !t
  %3 = call @outer(%x) : (!t) -> !t
  return %0, %1, %2, %3 : !t, !t, !t, !t
}

// -----

// Arguments that the body does not connect are independent. The name lists each scope once, arguments first.
// CHECK-LABEL: module
// CHECK:       @pair(%{{.*}} {device.scope = #opencl0}, %{{.*}} {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #opencl0}, tensor<4xf32> {device.scope = #opencl0})
// CHECK:       @pair_cpu_0_opencl_0(%{{.*}} {device.scope = #cpu0}, %{{.*}} {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #cpu0}, tensor<4xf32> {device.scope = #opencl0})
// CHECK:       func.func @main(
// CHECK-NEXT:    call @pair(
// CHECK-NEXT:    call @pair_cpu_0_opencl_0(
// CHECK-NEXT:    return
#dev = #device.scope<"opencl", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @pair(%a: !t, %b: !t) -> (!t, !t) {
  %0 = math.exp %a : !t
  %1 = math.sin %b : !t
  return %0, %1 : !t, !t
}
func.func @main(%x: !t {device.scope = #dev}, %y: !t {device.scope = #cpu}) -> (!t, !t, !t, !t) {
  %0:2 = call @pair(%x, %x) : (!t, !t) -> (!t, !t)
  %1:2 = call @pair(%y, %x) : (!t, !t) -> (!t, !t)
  return %0#0, %0#1, %1#0, %1#1 : !t, !t, !t, !t
}

// -----

// What a body demands holds for all calls: there is nothing to gain from a clone, and the arguments are copied.
// CHECK-LABEL: module
// CHECK:       @fixed(%{{.*}} {device.scope = #cuda0}) -> (tensor<4xf32> {device.scope = #cuda0})
// CHECK-NOT:   @fixed_
// CHECK:       func.func @main(
// CHECK-NEXT:    device.device_copy %arg1 from #cpu0 to #cuda0
// CHECK-NEXT:    call @fixed(%arg0)
// CHECK:         call @fixed(
#gpu = #device.scope<"cuda", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @fixed(%a: !t) -> !t {
  %0 = math.exp %a : !t
  %1 = "device.on_device"(%0) {scope = #gpu} : (!t) -> !t
  return %1 : !t
}
func.func @main(%x: !t {device.scope = #gpu}, %y: !t {device.scope = #cpu}) -> (!t, !t) {
  %0 = call @fixed(%x) : (!t) -> !t
  %1 = call @fixed(%y) : (!t) -> !t
  return %0, %1 : !t, !t
}

// -----

// Functions that call each other are cloned together, and calls among them are monomorphic.
// CHECK-LABEL: module
// CHECK:       @even(%{{.*}} {device.scope = #opencl0}
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    func.call @odd(
// CHECK:       @even_opencl_1(%{{.*}} {device.scope = #opencl1}
// CHECK:         math.exp %{{.*}} {device.scope = #opencl1}
// CHECK-NEXT:    func.call @odd_opencl_1(
// CHECK:       @odd(%{{.*}} {device.scope = #opencl0}
// CHECK:         call @even(
// CHECK:       @odd_opencl_1(%{{.*}} {device.scope = #opencl1}
// CHECK:         call @even_opencl_1(
// CHECK:       func.func @main(
// CHECK-NEXT:    call @even(%arg0
// CHECK-NEXT:    call @odd_opencl_1(%arg1
// CHECK-NEXT:    call @even_opencl_1(
// CHECK-NEXT:    return
#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
!t = tensor<4xf32>
func.func private @even(%a: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %done = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %done -> !t {
    scf.yield %a : !t
  } else {
    %m = arith.subi %n, %c1 : index
    %e = math.exp %a : !t
    %0 = func.call @odd(%e, %m) : (!t, index) -> !t
    scf.yield %0 : !t
  }
  return %r : !t
}
func.func private @odd(%a: !t, %n: index) -> !t {
  %c1 = arith.constant 1 : index
  %m = arith.subi %n, %c1 : index
  %0 = call @even(%a, %m) : (!t, index) -> !t
  return %0 : !t
}
func.func @main(%x: !t, %y: !t, %n: index) -> (!t, !t, !t {device.scope = #dev1}) {
  %0 = call @even(%x, %n) {device.scope = #dev} : (!t, index) -> !t
  %1 = call @odd(%y, %n) {device.scope = #dev1} : (!t, index) -> !t
  %2 = call @even(%1, %n) : (!t, index) -> !t
  return %0, %1, %2 : !t, !t, !t
}

// -----

// Function values: each use of a constant is a use of the function. Constants that name one function stay one.
// CHECK-LABEL: module
// CHECK:       @neg(%{{.*}} {device.scope = #cpu0})
// CHECK:       @neg_opencl_0(%{{.*}} {device.scope = #opencl0})
// CHECK:       @apply(%{{.*}}: (tensor<4xf32>) -> tensor<4xf32> {device.scope = #cpu0}, %{{.*}} {device.scope = #cpu0})
// CHECK:       @apply_opencl_0(%{{.*}}: (tensor<4xf32>) -> tensor<4xf32> {device.scope = #opencl0}, %{{.*}} {device.scope = #opencl0})
// CHECK:       func.func @values(
// CHECK-NEXT:    %[[CPU:.*]] = constant @neg :
// CHECK-NEXT:    %[[DEV:.*]] = constant @neg_opencl_0 :
// CHECK-NEXT:    call @apply(%[[CPU]], %arg0)
// CHECK-NEXT:    call @apply_opencl_0(%[[DEV]], %arg1)
// CHECK-NEXT:    call_indirect %[[DEV]](%arg1)
// CHECK-NEXT:    %[[HIGH:.*]] = constant @apply_opencl_0 :
// CHECK-NEXT:    call_indirect %[[HIGH]](%[[DEV]], %arg1)
// CHECK-NEXT:    return
#dev = #device.scope<"opencl", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @neg(%a: !t) -> !t {
  %0 = arith.negf %a : !t
  return %0 : !t
}
func.func private @apply(%f: (!t) -> !t, %x: !t) -> !t {
  %0 = func.call_indirect %f(%x) : (!t) -> !t
  return %0 : !t
}
func.func @values(%x: !t {device.scope = #cpu}, %y: !t {device.scope = #dev}) -> (!t, !t, !t, !t) {
  %f = func.constant @neg : (!t) -> !t
  %0 = call @apply(%f, %x) : ((!t) -> !t, !t) -> !t
  %1 = call @apply(%f, %y) : ((!t) -> !t, !t) -> !t
  %2 = func.call_indirect %f(%y) : (!t) -> !t
  %a = func.constant @apply : ((!t) -> !t, !t) -> !t
  %3 = func.call_indirect %a(%f, %y) : ((!t) -> !t, !t) -> !t
  return %0, %1, %2, %3 : !t, !t, !t, !t
}

// -----

// A public function that is also called keeps its name for the first use. A declaration cannot be cloned: its first
// use decides, and others copy.
// CHECK-LABEL: module
// CHECK:       func.func @public(%{{.*}} {device.scope = #opencl0})
// CHECK:       func.func private @public_opencl_1(%{{.*}} {device.scope = #opencl1})
// CHECK:       func.func private @external(tensor<4xf32> {device.scope = #opencl0})
// CHECK:       func.func @main(
// CHECK-NEXT:    %[[A:.*]] = call @public(%arg0)
// CHECK-NEXT:    %[[B:.*]] = call @public_opencl_1(%arg1)
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[B]] from #opencl1 to #opencl0
// CHECK-NEXT:    call @external(%[[A]])
// CHECK-NEXT:    call @external(%[[C]])
#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
!t = tensor<4xf32>
func.func @public(%a: !t) -> !t {
  %0 = math.exp %a : !t
  return %0 : !t
}
func.func private @external(!t) -> !t
func.func @main(%x: !t, %y: !t) -> (!t, !t) {
  %0 = call @public(%x) {device.scope = #dev} : (!t) -> !t
  %1 = call @public(%y) {device.scope = #dev1} : (!t) -> !t
  %2 = call @external(%0) : (!t) -> !t
  %3 = call @external(%1) : (!t) -> !t
  return %2, %3 : !t, !t
}

// -----

// Callers see what a body would like (its argument is only used on the device: it arrives there, in one copy for
// both calls) and what a loop in it connects.
// CHECK-LABEL: module
// CHECK:       @layer(%{{.*}} {device.scope = #opencl0}, %{{.*}} {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK:       @loop(%{{.*}} {device.scope = #opencl0}, %{{.*}}: index) -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK:       @loop_cpu_0(%{{.*}} {device.scope = #cpu0}, %{{.*}}: index) -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK:       func.func @main(
// CHECK-NEXT:    %[[W:.*]] = device.device_copy %arg2 from #cpu0 to #opencl0
// CHECK-NEXT:    %[[A:.*]] = call @layer(%arg0, %[[W]])
// CHECK-NEXT:    %[[B:.*]] = call @layer(%[[A]], %[[W]])
// CHECK-NEXT:    call @loop(%[[B]],
// CHECK-NEXT:    call @loop_cpu_0(%arg1,
#dev = #device.scope<"opencl", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @layer(%a: !t, %b: !t) -> !t {
  %0 = arith.addf %a, %b {device.scope = #dev} : !t
  return %0 : !t
}
func.func private @loop(%a: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (!t) {
    %0 = math.exp %x : !t
    scf.yield %0 : !t
  }
  return %r : !t
}
func.func @main(%x: !t, %y: !t, %w: !t {device.scope = #cpu}, %n: index) -> (!t, !t) {
  %0 = call @layer(%x, %w) : (!t, !t) -> !t
  %1 = call @layer(%0, %w) : (!t, !t) -> !t
  %2 = call @loop(%1, %n) : (!t, index) -> !t
  %3 = "device.on_device"(%2) {scope = #dev} : (!t) -> !t
  %4 = call @loop(%y, %n) : (!t, index) -> !t
  return %3, %4 : !t, !t
}

// -----

// A memory scope that a callee names reaches its callers, through any number of calls.
// CHECK-LABEL: module
// CHECK:       @inner(%{{.*}} {device.scope = #opencl0_A}) -> (tensor<4xf32> {device.scope = #opencl0_A})
// CHECK:       @outer(%{{.*}} {device.scope = #opencl0_A}) -> (tensor<4xf32> {device.scope = #opencl0_A})
// CHECK-NOT:   device_copy
// CHECK:       func.func @main(%{{.*}} {device.scope = #opencl0_A}) -> (tensor<4xf32> {device.scope = #opencl0_A})
// CHECK-NEXT:    math.exp %arg0 {device.scope = #opencl0_A}
#dev = #device.scope<"opencl", 0 : i64, "", "">
#devA = #device.scope<"opencl", 0 : i64, "", "A">
!t = tensor<4xf32>
func.func private @inner(%a: !t) -> !t {
  %0 = arith.negf %a {device.scope = #devA} : !t
  return %0 : !t
}
func.func private @outer(%a: !t) -> !t {
  %0 = arith.negf %a {device.scope = #dev} : !t
  %1 = call @inner(%0) : (!t) -> !t
  return %1 : !t
}
func.func @main(%x: !t {device.scope = #dev}) -> !t {
  %0 = math.exp %x {device.scope = #dev} : !t
  %1 = call @outer(%0) : (!t) -> !t
  %2 = call @outer(%1) : (!t) -> !t
  return %2 : !t
}

// -----

// A function called in a parallel loop runs where the loop runs.
// CHECK-LABEL: module
// CHECK:       @kernel(%{{.*}} {device.scope = #opencl0})
// CHECK:       @kernel_cpu_0(%{{.*}} {device.scope = #cpu0})
// CHECK:       func.func @main(
// CHECK:         scf.forall
// CHECK-NEXT:      func.call @kernel(
// CHECK:         call @kernel_cpu_0(
#dev = #device.scope<"opencl", 0 : i64, "", "">
#cpu = #device.scope<"cpu", 0 : i64, "", "">
!t = tensor<4xf32>
func.func private @kernel(%a: !t) -> !t {
  %0 = arith.negf %a : !t
  return %0 : !t
}
func.func @main(%x: !t {device.scope = #cpu}) -> (!t, !t) {
  %0 = scf.forall (%i) in (4) shared_outs(%o = %x) -> (!t) {
    %1 = func.call @kernel(%x) : (!t) -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0] [4] [1] : !t into !t
    }
  } {device.scope = #dev}
  %2 = call @kernel(%x) : (!t) -> !t
  return %0, %2 : !t, !t
}
