// RUN: devscope-opt %s --split-input-file -p device-merge,device-verify | filecheck %s

// Equal but for names, and, once their callees are one, callers. Another scope, target, constant, signature or
// sign of zero is another function; what others can see stays.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @inner_a(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %c = arith.constant dense<0.0> : tensor<4xf32>
  %0 = arith.addf %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @inner_b(%in: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %sum = arith.addf %in, %zero : tensor<4xf32>
  return %sum : tensor<4xf32>
}
func.func private @negative_zero(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %c = arith.constant dense<-0.0> : tensor<4xf32>
  %0 = arith.addf %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @swapped(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %c = arith.constant dense<0.0> : tensor<4xf32>
  %0 = arith.addf %c, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @other_target(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {workgroup = 64 : i64}>} {
  %c = arith.constant dense<0.0> : tensor<4xf32>
  %0 = arith.addf %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @other_device(%x: tensor<4xf32> {device.scope = #dev1}) -> (tensor<4xf32> {device.scope = #dev1})
    attributes {device.scope = #dev1, device.target = #device.target<"opencl", {}>} {
  %c = arith.constant dense<0.0> : tensor<4xf32>
  %0 = arith.addf %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer_a(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = call @inner_a(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @outer_b(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = call @inner_b(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = #dev}, %y: tensor<4xf32> {device.scope = #dev1})
    -> (tensor<4xf32> {device.scope = #dev}, tensor<4xf32> {device.scope = #dev1})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @outer_a(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @outer_b(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @inner_b(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @negative_zero(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = call @swapped(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = call @other_target(%4) : (tensor<4xf32>) -> tensor<4xf32>
  %6 = call @other_device(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %5, %6 : tensor<4xf32>, tensor<4xf32>
}
// CHECK:       func.func private @inner_a
// CHECK-NOT:   func.func private @inner_b
// CHECK:       func.func private @negative_zero
// CHECK:       func.func private @swapped
// CHECK:       func.func private @other_target
// CHECK:       func.func private @other_device
// CHECK:       func.func private @outer_a
// CHECK:         call @inner_a
// CHECK-NOT:   @outer_b
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    call @outer_a
// CHECK-NEXT:    call @outer_a
// CHECK-NEXT:    call @inner_a
// CHECK-NEXT:    call @negative_zero
// CHECK-NEXT:    call @swapped
// CHECK-NEXT:    call @other_target
// CHECK-NEXT:    call @other_device

// -----

// What is checked as the program runs is named by its place: only what comes from one place is equal.

func.func private @sum_a(%x: i32, %y: i32) -> i32 {
  %0 = arith.divsi %x, %y : i32 loc("a.mlir":1:1)
  return %0 : i32
}
func.func private @sum_a_again(%x: i32, %y: i32) -> i32 {
  %0 = arith.divsi %x, %y : i32 loc("a.mlir":1:1)
  return %0 : i32
}
func.func private @sum_b(%x: i32, %y: i32) -> i32 {
  %0 = arith.divsi %x, %y : i32 loc("a.mlir":2:1)
  return %0 : i32
}
func.func @sums(%x: i32, %y: i32) -> i32 {
  %0 = call @sum_a(%x, %y) : (i32, i32) -> i32
  %1 = call @sum_a_again(%0, %y) : (i32, i32) -> i32
  %2 = call @sum_b(%1, %y) : (i32, i32) -> i32
  return %2 : i32
}
// CHECK-LABEL: func.func @sums
// CHECK-NEXT:    call @sum_a(
// CHECK-NEXT:    call @sum_a(
// CHECK-NEXT:    call @sum_b(

// -----

// Functions that call themselves in the same places are equal; branches and regions count, values in order.

func.func private @down_a(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %done = arith.cmpi sle, %n, %zero : i32
  cf.cond_br %done, ^end(%n : i32), ^more
^more:
  %less = arith.subi %n, %one : i32
  %0 = call @down_a(%less) : (i32) -> i32
  cf.br ^end(%0 : i32)
^end(%r: i32):
  return %r : i32
}
func.func private @down_b(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %done = arith.cmpi sle, %n, %zero : i32
  cf.cond_br %done, ^end(%n : i32), ^more
^more:
  %less = arith.subi %n, %one : i32
  %0 = call @down_b(%less) : (i32) -> i32
  cf.br ^end(%0 : i32)
^end(%r: i32):
  return %r : i32
}
func.func private @other_way(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %done = arith.cmpi sle, %n, %zero : i32
  cf.cond_br %done, ^more, ^end(%n : i32)
^more:
  %less = arith.subi %n, %one : i32
  %0 = call @other_way(%less) : (i32) -> i32
  cf.br ^end(%0 : i32)
^end(%r: i32):
  return %r : i32
}
func.func @recursive(%n: i32) -> (i32, i32, i32) {
  %0 = call @down_a(%n) : (i32) -> i32
  %1 = call @down_b(%n) : (i32) -> i32
  %2 = call @other_way(%n) : (i32) -> i32
  return %0, %1, %2 : i32, i32, i32
}
// CHECK-LABEL: func.func @recursive
// CHECK-NEXT:    call @down_a
// CHECK-NEXT:    call @down_a
// CHECK-NEXT:    call @other_way
