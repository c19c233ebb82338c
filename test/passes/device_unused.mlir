// RUN: devscope-opt %s --split-input-file -p device-unused,device-verify | filecheck %s

// Arguments and results that nobody needs go on both sides, with what computes them and the functions that only
// they call. Results that some call needs stay for all.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @helper(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = math.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @work(%x: tensor<4xf32> {device.scope = #dev}, %y: tensor<4xf32> {device.scope = #dev}, %s: f32, %n: index)
    -> (tensor<4xf32> {device.scope = #dev}, f32, tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = call @helper(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.exp %x : tensor<4xf32>
  %2 = arith.addf %s, %s : f32
  return %0, %2, %1 : tensor<4xf32>, f32, tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = #dev}, %h: tensor<4xf32> {device.scope = #host}, %s: f32, %n: index)
    -> (tensor<4xf32> {device.scope = #dev}, f32)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %y = "device.device_copy"(%h) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %0:3 = call @work(%x, %y, %s, %n) : (tensor<4xf32>, tensor<4xf32>, f32, index) -> (tensor<4xf32>, f32, tensor<4xf32>)
  %1:3 = call @work(%0#2, %y, %s, %n) : (tensor<4xf32>, tensor<4xf32>, f32, index) -> (tensor<4xf32>, f32, tensor<4xf32>)
  return %1#2, %0#1 : tensor<4xf32>, f32
}
// CHECK-NOT:     @helper
// CHECK-LABEL: func.func private @work(%arg0: tensor<4xf32> {device.scope = #opencl0}, %arg1: f32)
// CHECK-SAME:    -> (f32, tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    [[E:%.*]] = math.exp %arg0
// CHECK-NEXT:    [[S:%.*]] = arith.addf %arg1, %arg1
// CHECK-NEXT:    return [[S]], [[E]]
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    [[A:%.*]]:2 = call @work(%arg0, %arg2) : (tensor<4xf32>, f32) -> (f32, tensor<4xf32>)
// CHECK-NEXT:    [[B:%.*]]:2 = call @work([[A]]#1, %arg2)
// CHECK-NEXT:    return [[B]]#1, [[A]]#0

// -----

// What recursive functions only pass round is not needed; calls in the branches of a loop count on their own.
// A function that may not return, or stops the program, is called whether its results are used or not.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @even(%x: tensor<4xf32> {device.scope = #dev}, %n: i32, %round: f32) -> (i1, f32)
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %done = arith.cmpi eq, %n, %zero : i32
  cf.cond_br %done, ^end(%true, %round : i1, f32), ^more
^more:
  %less = arith.subi %n, %one : i32
  %1:2 = call @odd(%x, %less, %round) : (tensor<4xf32>, i32, f32) -> (i1, f32)
  cf.br ^end(%1#0, %1#1 : i1, f32)
^end(%a: i1, %b: f32):
  return %a, %b : i1, f32
}
func.func private @odd(%x: tensor<4xf32> {device.scope = #dev}, %n: i32, %round: f32) -> (i1, f32)
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %one = arith.constant 1 : i32
  %less = arith.subi %n, %one : i32
  %1:2 = call @even(%x, %less, %round) : (tensor<4xf32>, i32, f32) -> (i1, f32)
  return %1#0, %1#1 : i1, f32
}
func.func private @checks(%x: tensor<4xf32> {device.scope = #dev}, %ok: i1) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  cf.assert %ok, "no"
  return %x : tensor<4xf32>
}
func.func private @pure(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @effects(%x: tensor<4xf32> {device.scope = #dev}, %n: i32, %f: f32, %ok: i1)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0:2 = call @even(%x, %n, %f) : (tensor<4xf32>, i32, f32) -> (i1, f32)
  scf.if %ok {
    %1 = func.call @checks(%x, %0#0) : (tensor<4xf32>, i1) -> tensor<4xf32>
    %2 = func.call @pure(%1) : (tensor<4xf32>) -> tensor<4xf32>
  }
  return
}
// CHECK-LABEL: func.func private @even(%arg0: i32, %arg1: f32) -> (i1, f32)
// CHECK-LABEL: func.func private @odd(%arg0: i32, %arg1: f32) -> (i1, f32)
// CHECK-LABEL: func.func private @checks(%arg0: i1) attributes
// CHECK-NEXT:    cf.assert %arg0
// CHECK-NEXT:    return
// CHECK-NOT:     @pure
// CHECK-LABEL: func.func @effects
// CHECK-NEXT:    [[E:%.*]]:2 = call @even(%arg1, %arg2)
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      func.call @checks([[E]]#0) : (i1) -> ()
// CHECK-NEXT:    }

// -----

// Loops without a use go; public functions and function values keep what they are.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @value(%n: index, %unused: index) -> index {
  return %n : index
}
func.func private @nobody() {
  return
}
func.func private @elsewhere(index)
func.func @public(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> ((index, index) -> index)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
    %1 = func.call @value(%i, %t) : (index, index) -> index
    scf.yield %1 : index
  }
  call @elsewhere(%n) : (index) -> ()
  %f = constant @value : (index, index) -> index
  return %f : (index, index) -> index
}
// CHECK:       func.func private @value(%arg0: index, %arg1: index) -> index
// CHECK-NOT:   @nobody
// CHECK:       func.func private @elsewhere(index)
// CHECK-LABEL: func.func @public(%arg0: tensor<4xf32>
// CHECK-NEXT:    call @elsewhere(%arg1)
// CHECK-NEXT:    [[F:%.*]] = constant @value
// CHECK-NEXT:    return [[F]]
