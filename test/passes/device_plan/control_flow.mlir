// Values flow along branches, loops, blocks and calls; copies stand where every path allows.
// RUN: devscope-opt %s -p 'device-plan,device-verify' | filecheck %s
// RUN: devscope-opt %s -p 'device-plan' > %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// Only one path needs the copy: it is made on that path.
// CHECK-LABEL: func.func @one_path
// CHECK-NOT:     device_copy
// CHECK:         scf.if
// CHECK-NEXT:      device.device_copy %{{.*}} from #cpu0 to #opencl0
// CHECK-NEXT:      math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:      device.device_copy %{{.*}} from #opencl0 to #cpu0
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield
func.func @one_path(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %0 = math.sin %x : tensor<4xf32>
  %1 = scf.if %p -> (tensor<4xf32>) {
    %2 = math.exp %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  %3 = math.cos %1 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Both paths need it: one copy, right after the definition.
// CHECK-LABEL: func.func @both_paths
// CHECK:         %[[S:.*]] = math.sin
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[S]] from #cpu0 to #opencl0
// CHECK-NEXT:    scf.if
// CHECK-NOT:     dst = #opencl0
// CHECK:         return
func.func @both_paths(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %0 = math.sin %x : tensor<4xf32>
  %1 = scf.if %p -> (tensor<4xf32>) {
    %2 = math.exp %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    %3 = math.cos %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// What a loop does not change is copied before it; what it carries stays on the device.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[W:.*]] = math.sin
// CHECK-NEXT:    %[[WD:.*]] = device.device_copy %[[W]] from
// CHECK-NEXT:    %[[I:.*]] = math.cos
// CHECK-NEXT:    %[[ID:.*]] = device.device_copy %[[I]] from
// CHECK-NEXT:    %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[ID]])
// CHECK-NEXT:      %[[N:.*]] = arith.addf %[[A]], %[[WD]] {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[RH:.*]] = device.device_copy %[[R]] from #opencl0 to #cpu0
// CHECK-NEXT:    math.tanh %[[RH]] : tensor<4xf32>
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = math.sin %x : tensor<4xf32>
  %i = math.cos %x : tensor<4xf32>
  %0 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %i) -> (tensor<4xf32>) {
    %1 = arith.addf %a, %w {device.scope = #dev} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = math.tanh %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @while
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0}
// CHECK:         scf.while (%{{.*}} = %[[X]])
// CHECK:           tensor.extract %{{.*}} {device.scope = #opencl0}
// CHECK:           scf.condition
// CHECK:           math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield
// CHECK:         device.device_copy
// CHECK-NEXT:    math.tanh
func.func @while(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %0 = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %v = tensor.extract %a[%i] : tensor<4xf32>
    %c = arith.cmpf olt, %v, %v : f32
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    %1 = math.exp %b {device.scope = #dev} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = math.tanh %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @switch
// CHECK:         scf.index_switch
// CHECK-NEXT:    case 0 {
// CHECK-NEXT:      device.device_copy
// CHECK-NEXT:      math.exp %{{.*}} {device.scope = #opencl0}
// CHECK:         default {
// CHECK-NEXT:      math.cos
func.func @switch(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %0 = math.sin %x : tensor<4xf32>
  %1 = scf.index_switch %i -> tensor<4xf32>
  case 0 {
    %2 = math.exp %0 {device.scope = #dev} : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  default {
    %3 = math.cos %0 : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  %4 = scf.execute_region -> tensor<4xf32> {
    %5 = math.cos %1 : tensor<4xf32>
    scf.yield %5 : tensor<4xf32>
  }
  return %4 : tensor<4xf32>
}

// The same over blocks: the copy stands in the block that needs it, and before a loop of blocks.
// CHECK-LABEL: func.func @blocks
// CHECK:         %[[S:.*]] = math.sin
// CHECK-NEXT:    cf.cond_br %{{.*}}, ^[[LEFT:.*]], ^[[RIGHT:.*]]
// CHECK-NEXT:  ^[[LEFT]]:
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[S]] from #cpu0 to #opencl0
// CHECK-NEXT:    cf.br ^[[HEAD:.*]]
// CHECK-NEXT:  ^[[HEAD]]:
// CHECK-NEXT:    "my.use"(%[[C]]) {device.scope = #opencl0}
// CHECK-NEXT:    cf.cond_br %{{.*}}, ^[[HEAD]], ^[[RIGHT]]
func.func @blocks(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %0 = math.sin %x : tensor<4xf32>
  cf.cond_br %p, ^left, ^right
^left:
  cf.br ^head
^head:
  "my.use"(%0) {device.scope = #dev} : (tensor<4xf32>) -> ()
  cf.cond_br %p, ^head, ^right
^right:
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @block_arguments
// CHECK:         cf.switch %{{.*}} : i32, [
// CHECK-NEXT:      default: ^[[A:.*]](%[[X:.*]] : tensor<4xf32>),
// CHECK:         ^[[A]](%[[V:.*]]: tensor<4xf32>):
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[V]] from #cpu0 to #opencl0
// CHECK-NEXT:    math.exp %[[C]] {device.scope = #opencl0}
func.func @block_arguments(%x: tensor<4xf32>, %f: i32) -> tensor<4xf32> {
  cf.switch %f : i32, [
    default: ^a(%x : tensor<4xf32>),
    1: ^b(%x : tensor<4xf32>)
  ]
^a(%v: tensor<4xf32>):
  %0 = math.exp %v {device.scope = #dev} : tensor<4xf32>
  cf.br ^b(%0 : tensor<4xf32>)
^b(%w: tensor<4xf32>):
  %1 = math.cos %w : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Signatures: per argument and per result. A declaration is constrained by its attributes only.
// CHECK-LABEL: func.func private @callee
// CHECK-SAME:    (%{{.*}}: tensor<4xf32> {device.scope = #opencl0}, %{{.*}}: tensor<4xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0}, tensor<4xf32> {device.scope = #cpu0})
func.func private @callee(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = math.cos %y : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK:       func.func private @external(tensor<4xf32> {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #cpu0})
func.func private @external(tensor<4xf32> {device.scope = #dev}) -> tensor<4xf32>
// CHECK-LABEL: func.func @caller
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0}, %[[Y:.*]]: tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[R:.*]]:2 = call @callee(%[[X]], %[[Y]])
// CHECK-NEXT:    %[[E:.*]] = call @external(%[[R]]#0)
// CHECK-NEXT:    return %[[E]], %[[R]]#1
func.func @caller(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = call @callee(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1 = call @external(%0#0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// The operand of a call is copied like any other, and one value once.
// CHECK-LABEL: func.func @copies_to_call
// CHECK:         %[[S:.*]] = math.sin
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[S]] from #cpu0 to #opencl0
// CHECK-NEXT:    call @external(%[[C]])
// CHECK-NEXT:    call @external(%[[C]])
func.func @copies_to_call(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = math.sin %x {device.scope = #host} : tensor<4xf32>
  %1 = call @external(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @external(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @recursive
// CHECK-SAME:    (%{{.*}}: tensor<4xf32> {device.scope = #opencl0}, %{{.*}}: i1) -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NOT:     device_copy
// CHECK:         return
func.func private @recursive(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = scf.if %p -> (tensor<4xf32>) {
    %2 = func.call @recursive(%0, %p) : (tensor<4xf32>, i1) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %0 : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// A function value has the scopes of the function.
// CHECK-LABEL: func.func @indirect
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0}
// CHECK:         call_indirect %{{.*}}(%[[X]], %{{.*}})
func.func @indirect(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = func.constant @callee : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %0:2 = func.call_indirect %f(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
