// RUN: devscope-opt %s --split-input-file -p device-sccp,device-verify | filecheck %s

// Into a device function: what all its calls pass. Out of it: what it is known to return.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @work(%x: tensor<?xf32> {device.scope = #dev}, %same: index, %other: index) -> (index, index)
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = arith.addi %same, %same : index
  %1 = arith.addi %same, %other : index
  return %0, %1 : index, index
}
func.func @in_and_out(%x: tensor<?xf32> {device.scope = #dev}, %n: index) -> (index, index)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %0:2 = call @work(%x, %c4, %c5) : (tensor<?xf32>, index, index) -> (index, index)
  %1:2 = call @work(%x, %c4, %n) : (tensor<?xf32>, index, index) -> (index, index)
  %2 = arith.muli %0#0, %c5 : index
  return %2, %0#1 : index, index
}
// CHECK-LABEL: func.func private @work
// CHECK-NEXT:    [[SAME:%.*]] = arith.constant 4 : index
// CHECK:         [[SUM:%.*]] = arith.addi [[SAME]], %arg2
// CHECK-NEXT:    return {{%.*}}, [[SUM]]
// CHECK-LABEL: func.func @in_and_out
// CHECK:         [[CALL:%.*]]:2 = call @work
// CHECK:         [[PRODUCT:%.*]] = arith.constant 40 : index
// CHECK:         return [[PRODUCT]], [[CALL]]#1

// -----

// A branch of the host on an element of a tensor that a device function is known to fill: both the reading and
// the branch are gone, and so is the reason to copy.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#id = affine_map<(d0) -> (d0)>
func.func private @limits(%x: tensor<?xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.fill ins(%two : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %b = arith.mulf %a, %a : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @branch(%x: tensor<?xf32> {device.scope = #dev}, %s: f32) -> (f32, tensor<4xf32> {device.scope = #host})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %c0 = arith.constant 0 : index
  %five = arith.constant 5.0 : f32
  %0 = call @limits(%x) : (tensor<?xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tensor.extract %1[%c0] : tensor<4xf32>
  %3 = arith.cmpf olt, %2, %five : f32
  %4 = scf.if %3 -> f32 {
    %5 = arith.addf %s, %s : f32
    scf.yield %5 : f32
  } else {
    %5 = math.exp %s : f32
    scf.yield %5 : f32
  }
  return %4, %1 : f32, tensor<4xf32>
}
// CHECK-LABEL: func.func @branch
// CHECK-NOT:     scf.if
// CHECK:         [[MADE:%.*]] = arith.constant dense<4.000000e+00> : tensor<4xf32>
// CHECK-NOT:     scf.if
// CHECK:         [[SUM:%.*]] = arith.addf %arg1, %arg1 : f32
// CHECK-NOT:     math.exp
// CHECK:         return [[SUM]], [[MADE]]

// -----

// Extents: of the argument at every call, of a result as the callee makes it, through a cast and a loop.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @sized(%x: tensor<?x8xf32> {device.scope = #dev}, %n: index)
    -> (tensor<?x?xf32> {device.scope = #dev}) attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%d, %n) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @extents(%x: tensor<16x8xf32> {device.scope = #dev}, %n: index) -> (index, index)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = tensor.cast %x {device.scope = #dev} : tensor<16x8xf32> to tensor<?x8xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %0) -> tensor<?x8xf32> {
    scf.yield %t : tensor<?x8xf32>
  }
  %2 = call @sized(%1, %n) : (tensor<?x8xf32>, index) -> tensor<?x?xf32>
  %3 = tensor.dim %2, %c0 : tensor<?x?xf32>
  %4 = tensor.dim %2, %c1 : tensor<?x?xf32>
  return %3, %4 : index, index
}
// CHECK-LABEL: func.func private @sized
// CHECK:         [[D:%.*]] = arith.constant 16 : index
// CHECK:         tensor.empty([[D]], %arg1)
// CHECK-LABEL: func.func @extents
// CHECK:         [[D:%.*]] = arith.constant 16 : index
// CHECK:         [[N:%.*]] = tensor.dim {{%.*}}, %c1
// CHECK:         return [[D]], [[N]]

// -----

// A tensor that every call makes of one value is made by the device function itself. One whose data is in a
// constant is not: such data stays where it is.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @takes(%x: tensor<1000xf32> {device.scope = #dev}, %y: tensor<17xi8> {device.scope = #dev})
    -> (tensor<1000xf32> {device.scope = #dev}, tensor<17xi8> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = math.exp %x : tensor<1000xf32>
  %1 = arith.addi %y, %y : tensor<17xi8>
  return %0, %1 : tensor<1000xf32>, tensor<17xi8>
}
func.func @gives() -> (tensor<1000xf32> {device.scope = #dev}, tensor<17xi8> {device.scope = #dev})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %x = arith.constant dense<-0.0> : tensor<1000xf32>
  %y = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<17xi8>
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<1000xf32>) -> tensor<1000xf32>
  %1 = "device.device_copy"(%y) {src = #host, dst = #dev} : (tensor<17xi8>) -> tensor<17xi8>
  %2:2 = call @takes(%0, %1) : (tensor<1000xf32>, tensor<17xi8>) -> (tensor<1000xf32>, tensor<17xi8>)
  return %2#0, %2#1 : tensor<1000xf32>, tensor<17xi8>
}
// CHECK-LABEL: func.func private @takes
// CHECK:         [[X:%.*]] = arith.constant dense<-0.000000e+00> : tensor<1000xf32>
// CHECK-NEXT:    math.exp [[X]]
// CHECK-NEXT:    arith.addi %arg1, %arg1

// -----

// Branches, switches and loops that are known: blocks that are not reached do not count, and go.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @flag(%x: tensor<4xf32> {device.scope = #dev}) -> (i1, index)
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %true = arith.constant true
  %c2 = arith.constant 2 : index
  return %true, %c2 : i1, index
}
func.func @control(%x: tensor<4xf32> {device.scope = #dev}, %n: i32) -> (i32, i32)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0:2 = call @flag(%x) : (tensor<4xf32>) -> (i1, index)
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  cf.cond_br %0#0, ^yes(%c1 : i32), ^no
^no:
  cf.br ^yes(%n : i32)
^yes(%a: i32):
  %c0 = arith.constant 0 : index
  %1 = scf.index_switch %0#1 -> i32
  case 2 {
    %2 = scf.for %i = %0#1 to %c0 step %0#1 iter_args(%t = %a) -> i32 : index {
      %3 = arith.muli %t, %n : i32
      scf.yield %3 : i32
    }
    %4 = arith.addi %2, %c7 : i32
    scf.yield %4 : i32
  }
  default {
    scf.yield %n : i32
  }
  return %1, %a : i32, i32
}
// CHECK-LABEL: func.func @control
// CHECK:         cf.br ^bb1([[ONE:%.*]] : i32)
// CHECK-NEXT:  ^bb1({{.*}}):
// CHECK-NOT:     scf.
// CHECK:         arith.constant 8 : i32
// CHECK-NEXT:    [[EIGHT:%.*]] = arith.constant 8 : i32
// CHECK-NEXT:    return [[EIGHT]], {{%.*}} : i32, i32

// -----

// Nothing is known of the arguments of functions that others may call: public ones, and function values.
// What they return is known all the same.

#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @public(%n: index) -> (index, index) {
  %c3 = arith.constant 3 : index
  return %n, %c3 : index, index
}
func.func private @value(%n: index) -> index {
  return %n : index
}
func.func @strangers() -> (index, index, index, (index) -> index) {
  %c1 = arith.constant 1 : index
  %0:2 = call @public(%c1) : (index) -> (index, index)
  %1 = call @value(%c1) : (index) -> index
  %f = constant @value : (index) -> index
  return %0#0, %0#1, %1, %f : index, index, index, (index) -> index
}
// CHECK-LABEL: func.func @public
// CHECK:         return %arg0
// CHECK-LABEL: func.func private @value
// CHECK-NEXT:    return %arg0
// CHECK-LABEL: func.func @strangers
// CHECK:         [[P:%.*]]:2 = call @public
// CHECK-NEXT:    [[THREE:%.*]] = arith.constant 3 : index
// CHECK:         [[V:%.*]] = call @value
// CHECK:         return [[P]]#0, [[THREE]], [[V]]

// -----

// Recursive: the argument is the same in all calls, and what comes back is what goes in.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @again(%x: tensor<4xf32> {device.scope = #dev}, %step: i32, %n: i32) -> (i32, i32)
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %c0 = arith.constant 0 : i32
  %done = arith.cmpi sle, %n, %c0 : i32
  %0:2 = scf.if %done -> (i32, i32) {
    scf.yield %step, %n : i32, i32
  } else {
    %less = arith.subi %n, %step : i32
    %1:2 = func.call @again(%x, %step, %less) : (tensor<4xf32>, i32, i32) -> (i32, i32)
    scf.yield %1#0, %1#1 : i32, i32
  }
  return %0#0, %0#1 : i32, i32
}
func.func @recursive(%x: tensor<4xf32> {device.scope = #dev}, %n: i32) -> (i32, i32)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %c2 = arith.constant 2 : i32
  %0:2 = call @again(%x, %c2, %n) : (tensor<4xf32>, i32, i32) -> (i32, i32)
  return %0#0, %0#1 : i32, i32
}
// CHECK-LABEL: func.func private @again
// CHECK:         [[TWO:%.*]] = arith.constant 2 : i32
// CHECK:         arith.subi %arg2, [[TWO]]
// CHECK-LABEL: func.func @recursive
// CHECK:         [[CALL:%.*]]:2 = call @again
// CHECK-NEXT:    [[TWO:%.*]] = arith.constant 2 : i32
// CHECK-NEXT:    return [[TWO]], [[CALL]]#1
