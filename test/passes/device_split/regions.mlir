// RUN: devscope-opt %s --split-input-file -p 'device-plan,device-bind-target,device-verify,device-split,device-verify,device-verify-split' | filecheck %s

// The whole body of a function is one region: it brings its target along, and the function stays the host's.

#fast = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
func.func @frame(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.region"() ({
    %1 = math.tanh %x : tensor<4xf32>
    %2 = math.exp %1 : tensor<4xf32>
    "device.yield"(%2) : (tensor<4xf32>) -> ()
  }) {scope = #fast} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @frame
// CHECK-SAME:    device.target = #device.target<"cpu", {}>
// CHECK-NEXT:    [[R:%.*]] = call @frame_opencl0_0(%arg0)
// CHECK-NEXT:    return [[R]]
// CHECK:       func.func private @frame_opencl0_0
// CHECK-SAME:    device.target = #device.target<"opencl", {workgroup = 64 : i64}>
// CHECK-NEXT:    math.tanh
// CHECK-NEXT:    math.exp

// -----

// A function for a device, without any region: all of its body is one.

func.func @whole(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {device.target = #device.target<"opencl", {workgroup = 64 : i64}>} {
  %0 = math.tanh %x : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @whole
// CHECK-SAME:    device.scope = #cpu0, device.target = #device.target<"cpu", {}>
// CHECK-NEXT:    [[R:%.*]] = call @whole_opencl0_0(%arg0)
// CHECK-NEXT:    return [[R]]
// CHECK:       func.func private @whole_opencl0_0
// CHECK-SAME:    device.target = #device.target<"opencl", {workgroup = 64 : i64}>

// -----

// Device and host are the same: nothing happens.

#here = #device.scope<"cpu", 0 : i64, "", "">
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x {device.scope = #here} : tensor<4xf32>
  %1 = "device.region"() ({
    %2 = math.exp %0 : tensor<4xf32>
    "device.yield"(%2) : (tensor<4xf32>) -> ()
  }) {scope = #here} : () -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @same
// CHECK-NEXT:    math.tanh
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    return
// CHECK-NEXT:  }
// CHECK-NEXT:  }

// -----

// What only the host can do, here a call of something defined elsewhere, stays outside, in its order. Work before
// and behind it that does not wait for it is one region.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @log(f32)
func.func @host_calls(%x: tensor<4xf32>, %s: f32) -> tensor<4xf32> attributes {device.scope = #dev} {
  call @log(%s) : (f32) -> ()
  %0 = math.tanh %x : tensor<4xf32>
  call @log(%s) : (f32) -> ()
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @host_calls
// CHECK:         [[R:%.*]] = call @host_calls_opencl0_0(%arg0)
// CHECK-NEXT:    call @log(%arg1)
// CHECK-NEXT:    call @log(%arg1)
// CHECK-NEXT:    return [[R]]
// CHECK:       func.func private @host_calls_opencl0_0
// CHECK-NEXT:    math.tanh
// CHECK-NEXT:    math.exp

// -----

// Where a host call needs a result of one and gives a scalar to the other, the regions are two, each maximal.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @ask(f32) -> f32
func.func @between(%x: tensor<4xf32>) -> tensor<4xf32> attributes {device.scope = #dev} {
  %c0 = arith.constant 0 : index
  %0 = math.tanh %x : tensor<4xf32>
  %1 = tensor.extract %0[%c0] : tensor<4xf32>
  %2 = call @ask(%1) : (f32) -> f32
  %3 = tensor.splat %2 : tensor<4xf32>
  %4 = arith.mulf %0, %3 : tensor<4xf32>
  %5 = math.exp %x : tensor<4xf32>
  %6 = arith.addf %4, %5 : tensor<4xf32>
  return %6 : tensor<4xf32>
}
// CHECK-LABEL: func.func @between
// CHECK:         [[A:%.*]]:{{[23]}} = call @between_opencl0_0(%arg0)
// CHECK-NEXT:    [[S:%.*]] = call @ask([[A]]#{{[0-9]}})
// CHECK-NEXT:    [[B:%.*]] = call @between_opencl0_1(
// CHECK-NEXT:    return [[B]]

// -----

// Existing regions are respected: neighbours keep their devices and targets, and what stands between them.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#far = #device.scope<"opencl", 1 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
func.func @neighbours(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.region"() ({
    %1 = math.tanh %x : tensor<4xf32>
    "device.yield"(%1) : (tensor<4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<4xf32>
  %2 = "device.region"() ({
    %3 = math.exp %0 : tensor<4xf32>
    "device.yield"(%3) : (tensor<4xf32>) -> ()
  }) {scope = #far} : () -> tensor<4xf32>
  %4 = math.absf %2 {device.scope = #far} : tensor<4xf32>
  return %4 : tensor<4xf32>
}
// CHECK-LABEL: func.func @neighbours
// CHECK:         [[A:%.*]] = call @neighbours_opencl0_0(
// CHECK-NEXT:    [[C:%.*]] = device.device_copy [[A]] from
// CHECK-NEXT:    [[B:%.*]] = call @neighbours_opencl1_0([[C]])
// CHECK-NEXT:    return [[B]]
// CHECK:       func.func private @neighbours_opencl0_0
// CHECK-SAME:    device.target = #device.target<"opencl", {}>
// CHECK:       func.func private @neighbours_opencl1_0
// CHECK-SAME:    device.target = #device.target<"opencl", {workgroup = 32 : i64}>
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    math.absf

// -----

// Regions of one device with different targets: its data stays where it is.

#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 128 : i64}>, "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
func.func @targets(%x: tensor<4xf32> {device.scope = #wide}) -> (tensor<4xf32> {device.scope = #slim}) {
  %0 = math.tanh %x {device.scope = #wide} : tensor<4xf32>
  %1 = math.exp %0 {device.scope = #slim} : tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @targets
// CHECK-SAME:    (%arg0: tensor<4xf32> {device.scope = #opencl0}) -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    [[A:%.*]] = call @targets_opencl0_0(%arg0)
// CHECK-NEXT:    [[B:%.*]] = call @targets_opencl0_1([[A]])
// CHECK-NEXT:    return [[B]]

// -----

// Several regions in one branch, one of them inside a loop that stays on the host.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @nested(%x: tensor<4xf32> {device.scope = #dev}, %c: i1, %n: index) -> (tensor<4xf32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
    %2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %1) -> tensor<4xf32> {
      %3 = math.exp %a {device.scope = #dev} : tensor<4xf32>
      %4 = math.absf %3 {device.scope = #host} : tensor<4xf32>
      %5 = math.sin %4 {device.scope = #dev} : tensor<4xf32>
      scf.yield %5 : tensor<4xf32>
    }
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @nested
// CHECK:         scf.if
// CHECK-NEXT:      func.call @nested_opencl0_0
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        func.call @nested_opencl0_1
// CHECK-NEXT:        device.device_copy
// CHECK-NEXT:        math.absf
// CHECK-NEXT:        device.device_copy
// CHECK-NEXT:        func.call @nested_opencl0_2

// -----

// A call alone is not outlined, unless it takes a constant or a splat, which the host does not make for it.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @scale(%x: tensor<4xf32> {device.scope = #dev}, %y: tensor<4xf32> {device.scope = #dev})
    -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = arith.mulf %x, %y {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @calls(%x: tensor<4xf32> {device.scope = #dev}, %s: f32)
    -> (tensor<4xf32> {device.scope = #dev}, tensor<4xf32> {device.scope = #dev}) {
  %0 = tensor.splat %s {device.scope = #dev} : tensor<4xf32>
  %1 = arith.constant {device.scope = #dev} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %2 = call @scale(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @call(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = call @scale(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    [[R:%.*]] = call @calls_opencl0_0(%arg1) {device.call = "launch"}
// CHECK-NEXT:    return [[R]], %arg0
// CHECK:       func.func private @calls_opencl0_0(%arg0: f32)
// CHECK-DAG:     [[S:%.*]] = tensor.splat %arg0
// CHECK-DAG:     [[C:%.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK:         [[R:%.*]] = call @scale([[S]], [[C]])
// CHECK-NEXT:    return [[R]]
// CHECK-LABEL: func.func @call(
// CHECK-NEXT:    call @{{scale.*}}(%arg0, %arg0) {device.call =

// -----

// One region, behind the assertion that its second operation needs. What waits for a device is asserted behind that
// device's work, and what this guards is a region of its own.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#each = {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
func.func @guarded(%x: tensor<8xf32> {device.scope = #dev}, %i: index)
    -> (tensor<8xf32> {device.scope = #dev}, tensor<8xf32> {device.scope = #dev}, tensor<8xf32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %0 = math.exp %x {device.scope = #dev} : tensor<8xf32>
  %there = arith.cmpi ult, %i, %c8 : index
  cf.assert %there, "no such element"
  %e = tensor.empty() {device.scope = #dev} : tensor<8xf32>
  %1 = linalg.generic #each outs(%e : tensor<8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%old: f32):
    %v = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %back = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<8xf32>) -> tensor<8xf32>
  %first = tensor.extract %back[%c0] : tensor<8xf32>
  %positive = arith.cmpf ogt, %first, %zero : f32
  cf.assert %positive, "not positive"
  %2 = math.log %1 {device.scope = #dev} : tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @guarded(
// CHECK:         cf.assert {{.*}} "no such element"
// CHECK-NEXT:    [[R:%.*]]:2 = call @guarded_opencl0_0
// CHECK:         device.device_copy
// CHECK:         cf.assert {{.*}} "not positive"
// CHECK-NEXT:    call @guarded_opencl0_1([[R]]#1)

// -----

// A division of sizes that an assertion guards comes behind it, and what takes its result behind both: on the host, and
// in a region that has a copy of its own.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @size(%x: tensor<?xf32> {device.scope = #dev}, %n: index) -> (tensor<?xf32> {device.scope = #dev}, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %some = arith.cmpi ugt, %n, %c0 : index
  cf.assert %some, "no parts"
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %part = arith.divsi %d, %n : index
  %size = arith.addi %part, %c1 : index
  %e = tensor.empty(%size) {device.scope = #dev} : tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill {device.scope = #dev} ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %0, %size : tensor<?xf32>, index
}
// CHECK-LABEL: func.func @size(
// CHECK:         cf.assert
// CHECK:         [[PART:%.*]] = arith.divsi
// CHECK:         [[SIZE:%.*]] = arith.addi [[PART]]
// CHECK:         call @size_opencl0_0(
