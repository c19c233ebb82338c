// RUN: devscope-opt %s --split-input-file -p device-bind-target | filecheck %s
// RUN: devscope-opt %s --split-input-file -p 'device-bind-target,device-bind-target' | filecheck %s

// Functions get the target of where their own code runs; targets that stand are kept.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @defined_elsewhere(i32)
// CHECK:      func.func private @defined_elsewhere(i32)
// CHECK-SAME:   device.target = #device.target<"cpu", {}>
func.func private @on_the_device(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func private @on_the_device
// CHECK-SAME:   attributes {device.target = #device.target<"opencl", {}>}
func.func private @mixed(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK:      func.func private @mixed
// CHECK-SAME:   attributes {device.target = #device.target<"cpu", {}>}
func.func @exposed(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host}) {
  %0 = call @mixed(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func @exposed
// CHECK-SAME:   attributes {device.target = #device.target<"cpu", {}>}
func.func private @bound(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.target = #device.target<"opencl", {workgroup = 64 : i64}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func private @bound
// CHECK-SAME:   attributes {device.target = #device.target<"opencl", {workgroup = 64 : i64}>}

// -----

// An exposed function for a device gets the host part that it lacks, and keeps one that it has.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @without(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.target = #device.target<"opencl", {workgroup = 64 : i64}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func @without
// CHECK-SAME:   attributes {device.host_target = #device.target<"cpu", {}>, device.target = #device.target<"opencl", {workgroup = 64 : i64}>}
func.func @with(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.target = #device.target<"opencl", {}>, device.host_target = #device.target<"cpu", {opt = 2 : i64}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func @with
// CHECK-SAME:   attributes {device.host_target = #device.target<"cpu", {opt = 2 : i64}>, device.target = #device.target<"opencl", {}>}
func.func @frame(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev} {
  %0 = math.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK:      func.func @frame
// CHECK-SAME:   attributes {device.host_target = #device.target<"cpu", {}>, device.scope = #opencl0, device.target = #device.target<"opencl", {}>}

// -----

// Scalar code that kernels can call is for who calls it: the host only, a device only, or both, with a copy for
// the host under a fresh name. What it calls goes with it.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#id = affine_map<(d0) -> (d0)>
func.func private @for_host(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  return %0 : f32
}
// CHECK:      func.func private @for_host(
// CHECK-SAME:   device.target = #device.target<"cpu", {}>
func.func private @for_device(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
// CHECK:      func.func private @for_device(
// CHECK-SAME:   device.scope = #opencl0, device.target = #device.target<"opencl", {}>
func.func private @for_both(%x: f32) -> f32 {
  %0 = call @inner(%x) : (f32) -> f32
  %1 = arith.mulf %0, %x : f32
  return %1 : f32
}
// CHECK:      func.func private @for_both(
// CHECK-SAME:   device.scope = #opencl0, device.target = #device.target<"opencl", {}>
// CHECK-NEXT:   call @inner(
// CHECK:      func.func private @for_both_host_0(
// CHECK-SAME:   device.scope = #cpu0, device.target = #device.target<"cpu", {}>
// CHECK-NEXT:   call @inner_host(
func.func private @inner(%x: f32) -> f32 {
  %0 = arith.subf %x, %x : f32
  return %0 : f32
}
// CHECK:      func.func private @inner(
// CHECK-SAME:   #device.target<"opencl", {}>
// CHECK:      func.func private @inner_host(
// CHECK-SAME:   #device.target<"cpu", {}>
func.func private @for_both_host()
func.func private @nobody(%x: f32) -> f32 {
  return %x : f32
}
// CHECK:      func.func private @nobody(
// CHECK-SAME:   device.target = #device.target<"cpu", {}>
func.func @main(%x: tensor<8xf32> {device.scope = #dev}, %s: f32) -> (tensor<8xf32> {device.scope = #dev}, f32) {
  %e = tensor.empty() {device.scope = #dev} : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32):
    %p = func.call @for_both(%a) : (f32) -> f32
    %q = func.call @for_device(%p) : (f32) -> f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  %1 = call @for_both(%s) : (f32) -> f32
  %2 = call @for_host(%1) : (f32) -> f32
  return %0, %2 : tensor<8xf32>, f32
}
// CHECK-LABEL: func.func @main
// CHECK:         func.call @for_both(
// CHECK:         func.call @for_device(
// CHECK:         call @for_both_host_0(
// CHECK:         call @for_host(

// -----

// One copy per device and target.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#slim = #device.scope<"opencl", 1 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
#id = affine_map<(d0) -> (d0)>
func.func private @f(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
// CHECK:      func.func private @f(
// CHECK-SAME:   device.scope = #opencl0, device.target = #device.target<"opencl", {}>
// CHECK:      func.func private @f_opencl1_0(
// CHECK-SAME:   device.scope = #opencl1, device.target = #device.target<"opencl", {workgroup = 32 : i64}>
// CHECK:      func.func private @f_opencl1(
// CHECK-SAME:   device.scope = #opencl1, device.target = #device.target<"opencl", {}>
func.func @main(%x: tensor<8xf32> {device.scope = #dev}, %y: tensor<8xf32> {device.scope = #other},
                %z: tensor<8xf32> {device.scope = #slim})
    -> (tensor<8xf32> {device.scope = #dev}, tensor<8xf32> {device.scope = #other}, tensor<8xf32> {device.scope = #slim}) {
  %0 = linalg.map ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) {device.scope = #dev} (%a: f32, %i: f32) {
    %p = func.call @f(%a) : (f32) -> f32
    linalg.yield %p : f32
  }
  %1 = linalg.map ins(%y : tensor<8xf32>) outs(%y : tensor<8xf32>) {device.scope = #other} (%a: f32, %i: f32) {
    %p = func.call @f(%a) : (f32) -> f32
    linalg.yield %p : f32
  }
  %2 = linalg.map ins(%z : tensor<8xf32>) outs(%z : tensor<8xf32>) {device.scope = #slim} (%a: f32, %i: f32) {
    %p = func.call @f(%a) : (f32) -> f32
    linalg.yield %p : f32
  }
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK:      linalg.map { func.call {callee = @f} }
// CHECK:      {callee = @f_opencl1}
// CHECK:      {callee = @f_opencl1_0}
