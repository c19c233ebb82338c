// RUN: devscope-opt %s --split-input-file -p device-inline,device-verify | filecheck %s

// A target that cannot call: functions on buffers, with branches of their own, in loops; what is left is gone.
// Device functions of other targets call.

#no = #device.scope<"opencl", 0 : i64, "", "">
#yes = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @inner(%x: tensor<4xf32> {device.scope = #no}, %s: f32) -> (tensor<4xf32> {device.scope = #no}, f32)
    attributes {device.scope = #no, device.target = #device.target<"opencl", {calls = false}>} {
  %0 = math.exp %x : tensor<4xf32>
  %1 = arith.addf %s, %s : f32
  return %0, %1 : tensor<4xf32>, f32
}
func.func private @branches(%x: tensor<4xf32> {device.scope = #no}, %c: i1) -> (tensor<4xf32> {device.scope = #no})
    attributes {device.scope = #no, device.target = #device.target<"opencl", {calls = false}>} {
  cf.cond_br %c, ^a, ^b(%x : tensor<4xf32>)
^a:
  %0 = math.tanh %x : tensor<4xf32>
  cf.br ^b(%0 : tensor<4xf32>)
^b(%r: tensor<4xf32>):
  return %r : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32> {device.scope = #no}, %s: f32, %n: index, %c: i1) -> (tensor<4xf32> {device.scope = #no})
    attributes {device.scope = #no, device.target = #device.target<"opencl", {calls = false}>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x, %f = %s) -> (tensor<4xf32>, f32) {
    %1:2 = func.call @inner(%t, %f) : (tensor<4xf32>, f32) -> (tensor<4xf32>, f32)
    scf.yield %1#0, %1#1 : tensor<4xf32>, f32
  }
  %2 = call @branches(%0#0, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @callee(%x: tensor<4xf32> {device.scope = #yes}) -> (tensor<4xf32> {device.scope = #yes})
    attributes {device.scope = #yes, device.target = #device.target<"opencl", {}>} {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @caller(%x: tensor<4xf32> {device.scope = #yes}) -> (tensor<4xf32> {device.scope = #yes})
    attributes {device.scope = #yes, device.target = #device.target<"opencl", {}>} {
  %0 = call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = #no}, %y: tensor<4xf32> {device.scope = #yes}, %s: f32, %n: index, %c: i1)
    -> (tensor<4xf32> {device.scope = #no}, tensor<4xf32> {device.scope = #yes})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @outer(%x, %s, %n, %c) : (tensor<4xf32>, f32, index, i1) -> tensor<4xf32>
  %1 = call @caller(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-NOT:   @inner
// CHECK-NOT:   @branches
// CHECK-LABEL: func.func private @outer
// CHECK:         [[LOOP:%.*]]:2 = scf.for {{.*}} iter_args([[T:%.*]] = %arg0, [[F:%.*]] = %arg1)
// CHECK-NEXT:      [[E:%.*]] = math.exp [[T]]
// CHECK-NEXT:      [[S:%.*]] = arith.addf [[F]], [[F]]
// CHECK-NEXT:      scf.yield [[E]], [[S]]
// CHECK:         [[R:%.*]] = scf.execute_region -> tensor<4xf32> {
// CHECK-NEXT:      cf.cond_br %arg3, ^bb1, ^bb2([[LOOP]]#0
// CHECK:           math.tanh [[LOOP]]#0
// CHECK:         ^bb2([[V:%.*]]: tensor<4xf32>):
// CHECK-NEXT:      scf.yield [[V]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return [[R]]
// CHECK-LABEL: func.func private @caller
// CHECK-NEXT:    call @callee
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    call @outer
// CHECK-NEXT:    call @caller

// -----

// No kernel can call: functions of scalars are inlined into the body of a computation, whatever they are for, and
// what they call with them. The host still calls its own.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#id = affine_map<(d0) -> (d0)>
func.func private @cube(%a: f32) -> f32 attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @square(%a) : (f32) -> f32
  %1 = arith.mulf %0, %a : f32
  return %1 : f32
}
func.func private @square(%a: f32) -> f32 attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = arith.mulf %a, %a : f32
  return %0 : f32
}
func.func private @kernel(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %1 = func.call @cube(%a) : (f32) -> f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @both(%x: tensor<4xf32> {device.scope = #dev}, %s: f32) -> (tensor<4xf32> {device.scope = #dev}, f32)
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @cube(%s) : (f32) -> f32
  return %0, %1 : tensor<4xf32>, f32
}
// CHECK-LABEL: func.func private @cube
// CHECK:         call @square
// CHECK-LABEL: func.func private @square
// CHECK-LABEL: func.func private @kernel
// CHECK:         ^bb0([[A:%.*]]: f32, {{%.*}}: f32):
// CHECK-NEXT:      [[S:%.*]] = arith.mulf [[A]], [[A]]
// CHECK-NEXT:      [[C:%.*]] = arith.mulf [[S]], [[A]]
// CHECK-NEXT:      linalg.yield [[C]]
// CHECK-LABEL: func.func @both
// CHECK:         call @cube

// -----

// Recursion stays where a target can call, and on the host.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @again(%x: tensor<4xf32> {device.scope = #dev}, %c: i1) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = call @again(%x, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = #dev}, %c: i1) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @again(%x, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func private @again
// CHECK-NEXT:    call @again
