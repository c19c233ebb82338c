// RUN: devscope-opt %s --split-input-file -p 'device-move-copies,device-verify' | filecheck %s

// Copied to the device at the start of each iteration and back at its end: once in front of the loop, once behind it.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @for
// CHECK-NEXT:    [[IN:%.*]] = device.device_copy %arg0 from #cpu0 to #opencl0
// CHECK-NEXT:    [[R:%.*]] = scf.for {{.*}} iter_args([[P:%.*]] = [[IN]])
// CHECK-NEXT:      tensor.dim [[P]]
// CHECK-NEXT:      [[T:%.*]] = math.tanh [[P]] {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield [[T]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[OUT:%.*]] = device.device_copy [[R]] from #opencl0 to #cpu0
// CHECK-NEXT:    "ml.use"([[OUT]])
// CHECK-NEXT:    "ml.use"([[R]]) {device.scope = #opencl0}
// CHECK-NEXT:    return [[OUT]]
func.func @for(%x: tensor<?xf32> {device.scope = #host}, %n: index) -> (tensor<?xf32> {device.scope = #host}) {
  %r = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (tensor<?xf32>) {
    %s = tensor.dim %p, %n : tensor<?xf32>
    %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<?xf32>) -> tensor<?xf32>
    %1 = math.tanh %0 {device.scope = #dev} : tensor<?xf32>
    %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  "ml.use"(%r) : (tensor<?xf32>) -> ()
  %3 = "device.device_copy"(%r) {src = #host, dst = #dev} : (tensor<?xf32>) -> tensor<?xf32>
  "ml.use"(%3) {device.scope = #dev} : (tensor<?xf32>) -> ()
  return %r : tensor<?xf32>
}

// What comes from the device is not copied there, a constant is made there, and nothing is copied back for nobody.
// CHECK-LABEL: func.func @free
// CHECK-NEXT:    [[Z:%.*]] = arith.constant {device.scope = #opencl0} dense<0.000000e+00>
// CHECK-NEXT:    [[R:%.*]]:2 = scf.for {{.*}} iter_args([[P:%.*]] = %arg0, [[Q:%.*]] = [[Z]])
// CHECK-NEXT:      [[A:%.*]] = arith.addf [[P]], [[Q]] {device.scope = #opencl0}
// CHECK-NEXT:      [[B:%.*]] = arith.mulf [[P]], [[Q]] {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield [[A]], [[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return [[R]]#0
func.func @free(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> (tensor<4xf32> {device.scope = #dev}) {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %h = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.for %i = %n to %n step %n iter_args(%p = %h, %q = %z) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "device.device_copy"(%q) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = arith.addf %0, %1 {device.scope = #dev} : tensor<4xf32>
    %3 = arith.mulf %0, %1 {device.scope = #dev} : tensor<4xf32>
    %4 = "device.device_copy"(%2) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "device.device_copy"(%3) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %4, %5 : tensor<4xf32>, tensor<4xf32>
  }
  %6 = "device.device_copy"(%r#0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  return %6 : tensor<4xf32>
}

// -----

// Values that change places go together. What is copied around an inner loop is copied around the outer one.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @swapped
// CHECK-NEXT:    [[X:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    [[Y:%.*]] = device.device_copy %arg1 from
// CHECK-NEXT:    [[R:%.*]]:2 = scf.for {{.*}} iter_args([[P:%.*]] = [[X]], [[Q:%.*]] = [[Y]])
// CHECK-NEXT:      [[S:%.*]] = arith.addf [[P]], [[Q]] {device.scope = #opencl0}
// CHECK-NEXT:      scf.yield [[Q]], [[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[OUT:%.*]] = device.device_copy [[R]]#1 from
// CHECK-NEXT:    return [[OUT]]
func.func @swapped(%x: tensor<4xf32> {device.scope = #host}, %y: tensor<4xf32> {device.scope = #host}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r:2 = scf.for %i = %n to %n step %n iter_args(%p = %x, %q = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "device.device_copy"(%q) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = arith.addf %0, %1 {device.scope = #dev} : tensor<4xf32>
    %3 = "device.device_copy"(%2) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %q, %3 : tensor<4xf32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @nested
// CHECK-NEXT:    [[X:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    [[O:%.*]] = scf.for {{.*}} iter_args([[A:%.*]] = [[X]])
// CHECK-NEXT:      [[R:%.*]] = scf.for {{.*}} iter_args([[P:%.*]] = [[A]])
// CHECK-NEXT:        [[S:%.*]] = math.tanh [[P]] {device.scope = #opencl0}
// CHECK-NEXT:        scf.yield [[S]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield [[R]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[OUT:%.*]] = device.device_copy [[O]] from
// CHECK-NEXT:    return [[OUT]]
func.func @nested(%x: tensor<4xf32> {device.scope = #host}, %n: index) -> (tensor<4xf32> {device.scope = #host}) {
  %o = scf.for %j = %n to %n step %n iter_args(%a = %x) -> (tensor<4xf32>) {
    %r = scf.for %i = %n to %n step %n iter_args(%p = %a) -> (tensor<4xf32>) {
      %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
      %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %r : tensor<4xf32>
  }
  return %o : tensor<4xf32>
}

// -----

// Both regions of a while loop, and a branch that leaves its result on the device.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @while
// CHECK-NEXT:    [[IN:%.*]] = device.device_copy %arg0 from
// CHECK-NEXT:    [[R:%.*]] = scf.while ([[B:%.*]] = [[IN]])
// CHECK-NEXT:      [[S:%.*]] = tensor.extract [[B]][%arg2] {device.scope = #opencl0}
// CHECK-NEXT:      [[C:%.*]] = arith.cmpf olt, [[S]], [[S]]
// CHECK-NEXT:      scf.condition([[C]]) [[B]]
// CHECK-NEXT:    } do {
// CHECK-NEXT:    ^bb0([[A:%.*]]: tensor<4xf32>):
// CHECK-NEXT:      [[T:%.*]] = scf.if
// CHECK-NEXT:        [[U:%.*]] = math.tanh [[A]]
// CHECK-NEXT:        scf.yield [[U]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        [[V:%.*]] = math.sin [[A]]
// CHECK-NEXT:        scf.yield [[V]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield [[T]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[OUT:%.*]] = device.device_copy [[R]] from
// CHECK-NEXT:    return [[OUT]]
func.func @while(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.while (%b = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %0 = "device.device_copy"(%b) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tensor.extract %0[%n] {device.scope = #dev} : tensor<4xf32>
    %2 = arith.cmpf olt, %1, %1 : f32
    scf.condition(%2) %b : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    %y = scf.if %p -> tensor<4xf32> {
      %0 = "device.device_copy"(%a) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
      %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    } else {
      %0 = "device.device_copy"(%a) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = math.sin %0 {device.scope = #dev} : tensor<4xf32>
      %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The host needs what the loop carries, at the start of an iteration or at its end: it stays.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @used_at_the_start
// CHECK-NEXT:    scf.for {{.*}} iter_args({{.*}} = %arg0)
// CHECK-COUNT-2:   device_copy
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @used_at_the_start(%x: tensor<4xf32> {device.scope = #host}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (tensor<4xf32>) {
    "ml.use"(%p) : (tensor<4xf32>) -> ()
    %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @used_at_the_end
// CHECK-NEXT:    scf.for {{.*}} iter_args({{.*}} = %arg0)
// CHECK-COUNT-2:   device_copy
// CHECK-NEXT:      "ml.use"
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @used_at_the_end(%x: tensor<4xf32> {device.scope = #host}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (tensor<4xf32>) {
    %0 = "device.device_copy"(%p) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%2) : (tensor<4xf32>) -> ()
    scf.yield %2 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// The copy to the device is under a branch: perhaps no iteration makes it.
// CHECK-LABEL: func.func @perhaps_never
// CHECK-NEXT:    scf.for {{.*}} iter_args({{.*}} = %arg0)
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        device_copy
func.func @perhaps_never(%x: tensor<4xf32> {device.scope = #host}, %p: i1, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.for %i = %n to %n step %n iter_args(%q = %x) -> (tensor<4xf32>) {
    %y = scf.if %p -> tensor<4xf32> {
      %0 = "device.device_copy"(%q) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
      %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %2 : tensor<4xf32>
    } else {
      scf.yield %q : tensor<4xf32>
    }
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// With one iteration, a copy in front of the loop and one behind it would be more than the one inside.
// CHECK-LABEL: func.func @one_way
// CHECK-NEXT:    scf.for {{.*}} iter_args({{.*}} = %arg0)
// CHECK-NEXT:      math.tanh
// CHECK-NEXT:      device_copy
func.func @one_way(%x: tensor<4xf32> {device.scope = #host}, %w: tensor<4xf32> {device.scope = #dev}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.for %i = %n to %n step %n iter_args(%q = %x) -> (tensor<4xf32>) {
    %1 = math.tanh %w {device.scope = #dev} : tensor<4xf32>
    %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
