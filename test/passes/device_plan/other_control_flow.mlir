// Control flow of stablehlo and affine: values flow along it as along scf's.
// RUN: devscope-opt %s -p 'device-plan,device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
!t = tensor<4xf32>

// A loop carries data on the device and its counter on the host: one copy before it, one after it. The tensor that
// decides is read on the host.
// CHECK-LABEL: func.func @while(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[N:\w+]]: tensor<i32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0>
// CHECK-NEXT:    %[[C_0:.*]] = stablehlo.constant dense<1>
// CHECK-NEXT:    %[[V0:.*]] = stablehlo.sine %[[X]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V2:.*]]:2 = stablehlo.while(%[[ITERARG:.*]] = %[[C]], %[[ITERARG_1:.*]] = %[[V1]])
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[V5:.*]] = stablehlo.compare LT, %[[ITERARG]], %[[N]]
// CHECK-NEXT:      stablehlo.return %[[V5]]
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[V5:.*]] = stablehlo.add %[[ITERARG]], %[[C_0]]
// CHECK-NEXT:      %[[V6:.*]] = stablehlo.tanh %[[ITERARG_1]] {device.scope = #opencl0}
// CHECK-NEXT:      stablehlo.return %[[V5]], %[[V6]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]]#1 from #opencl0 to #cpu0
// CHECK-NEXT:    %[[V4:.*]] = stablehlo.cosine %[[V3]]
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @while(%x: !t, %n: tensor<i32>) -> !t {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.sine %x : !t
  %1:2 = stablehlo.while(%i = %zero, %a = %0) : tensor<i32>, !t
  cond {
    %2 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.tanh %a {device.scope = #dev} : !t
    stablehlo.return %2, %3 : tensor<i32>, !t
  }
  %4 = stablehlo.cosine %1#1 : !t
  return %4 : !t
}

// What decides may be computed on the device: then only the flag is copied to the host.
// CHECK-LABEL: func.func @while_on_device(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[CST:.*]] = stablehlo.constant {device.scope = #opencl0} dense<0.000000e+00>
// CHECK-NEXT:    %[[V0:.*]] = stablehlo.while(%[[ITERARG:.*]] = %[[X]])
// CHECK-NEXT:    cond {
// CHECK-NEXT:      %[[V1:.*]] = stablehlo.reduce(%[[ITERARG]] init: %[[CST]]) {{.*}} {device.scope = #opencl0}
// CHECK-NEXT:      %[[V2:.*]] = stablehlo.compare LT, %[[V1]], %[[CST]] {device.scope = #opencl0}
// CHECK-NEXT:      %[[V3:.*]] = device.device_copy %[[V2]] from #opencl0 to #cpu0
// CHECK-NEXT:      stablehlo.return %[[V3]]
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[V1:.*]] = stablehlo.tanh %[[ITERARG]] {device.scope = #opencl0}
// CHECK-NEXT:      stablehlo.return %[[V1]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @while_on_device(%x: !t) -> !t {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.while(%a = %x) : !t
  cond {
    %1 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] {device.scope = #dev}
      : (!t, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare LT, %1, %zero {device.scope = #dev} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.tanh %a {device.scope = #dev} : !t
    stablehlo.return %1 : !t
  }
  return %0 : !t
}

// Only the branch that needs it makes the copy.
// CHECK-LABEL: func.func @if(
// CHECK-SAME:    %[[P:\w+]]: tensor<i1> {device.scope = #cpu0},
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = stablehlo.sine %[[X]]
// CHECK-NEXT:    %[[V1:.*]] = "stablehlo.if"(%[[P]]) ({
// CHECK-NEXT:      %[[V3:.*]] = device.device_copy %[[V0]] from #cpu0 to #opencl0
// CHECK-NEXT:      %[[V4:.*]] = stablehlo.tanh %[[V3]] {device.scope = #opencl0}
// CHECK-NEXT:      %[[V5:.*]] = device.device_copy %[[V4]] from #opencl0 to #cpu0
// CHECK-NEXT:      stablehlo.return %[[V5]]
// CHECK-NEXT:    }, {
// CHECK-NEXT:      stablehlo.return %[[V0]]
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<4xf32>
// CHECK-NEXT:    %[[V2:.*]] = stablehlo.cosine %[[V1]]
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @if(%p: tensor<i1>, %x: !t) -> !t {
  %0 = stablehlo.sine %x : !t
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.tanh %0 {device.scope = #dev} : !t
    stablehlo.return %2 : !t
  }, {
    stablehlo.return %0 : !t
  }) : (tensor<i1>) -> !t
  %3 = stablehlo.cosine %1 : !t
  return %3 : !t
}

// CHECK-LABEL: func.func @case(
// CHECK-SAME:    %[[K:\w+]]: tensor<i32> {device.scope = #opencl0},
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[K]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[V1:.*]] = "stablehlo.case"(%[[V0]]) ({
// CHECK-NEXT:      %[[V2:.*]] = stablehlo.tanh %[[X]] {device.scope = #opencl0}
// CHECK-NEXT:      stablehlo.return %[[V2]]
// CHECK-NEXT:    }, {
// CHECK-NEXT:      %[[V2:.*]] = stablehlo.sine %[[X]] {device.scope = #opencl0}
// CHECK-NEXT:      stablehlo.return %[[V2]]
// CHECK-NEXT:    }) : (tensor<i32>) -> tensor<4xf32>
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @case(%k: tensor<i32> {device.scope = #dev}, %x: !t) -> !t {
  %1 = "stablehlo.case"(%k) ({
    %2 = stablehlo.tanh %x : !t
    %3 = "device.on_device"(%2) {scope = #dev} : (!t) -> !t
    stablehlo.return %3 : !t
  }, {
    %2 = stablehlo.sine %x : !t
    stablehlo.return %2 : !t
  }) : (tensor<i32>) -> !t
  return %1 : !t
}

// The bodies of computations are not planned, they belong to the computation.
// CHECK-LABEL: func.func @computation(
// CHECK-SAME:    %[[X:\w+]]: tensor<4x4xf32> {device.scope = #opencl0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[CST:.*]] = stablehlo.constant {device.scope = #opencl0} dense<0.000000e+00>
// CHECK-NEXT:    %[[V0:.*]] = stablehlo.reduce(%[[X]] init: %[[CST]]) {{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @computation(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce"(%x, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimensions = array<i64: 0>, device.scope = #dev} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Sizes that are tensors are on the host.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[X:\w+]]: tensor<?xf32> {device.scope = #opencl0},
// CHECK-SAME:    %[[S:\w+]]: tensor<2xi32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<?x?xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[V0:.*]] = stablehlo.tanh %[[X]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[V1:.*]] = stablehlo.dynamic_broadcast_in_dim %[[V0]], %[[S]], dims = [1] {device.scope = #opencl0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @dynamic(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.tanh %x {device.scope = #dev} : tensor<?xf32>
  %1 = "stablehlo.dynamic_broadcast_in_dim"(%0, %s) {broadcast_dimensions = array<i64: 1>, device.scope = #dev}
    : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @affine_for(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = math.sin %[[X]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #opencl0
// CHECK-NEXT:    %[[V2:.*]] = affine.for %[[ARG1:.*]] = 0 to 10 iter_args(%[[ARG2:.*]] = %[[V1]]) -> (tensor<4xf32>) {
// CHECK-NEXT:      %[[V5:.*]] = math.tanh %[[ARG2]] {device.scope = #opencl0}
// CHECK-NEXT:      affine.yield %[[V5]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[V4:.*]] = math.cos %[[V3]]
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @affine_for(%x: !t) -> !t {
  %0 = math.sin %x : !t
  %1 = affine.for %i = 0 to 10 iter_args(%a = %0) -> (!t) {
    %2 = math.tanh %a {device.scope = #dev} : !t
    affine.yield %2 : !t
  }
  %3 = math.cos %1 : !t
  return %3 : !t
}

// CHECK-LABEL: func.func @affine_if(
// CHECK-SAME:    %[[X:\w+]]: tensor<4xf32> {device.scope = #cpu0}, %[[N:\w+]]: index)
// CHECK-SAME:    -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = math.sin %[[X]]
// CHECK-NEXT:    %[[V1:.*]] = affine.if #set(%[[N]]) -> tensor<4xf32> {
// CHECK-NEXT:      %[[V2:.*]] = device.device_copy %[[V0]] from #cpu0 to #opencl0
// CHECK-NEXT:      %[[V3:.*]] = math.tanh %[[V2]] {device.scope = #opencl0}
// CHECK-NEXT:      %[[V4:.*]] = device.device_copy %[[V3]] from #opencl0 to #cpu0
// CHECK-NEXT:      affine.yield %[[V4]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      affine.yield %[[V0]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @affine_if(%x: !t, %n: index) -> !t {
  %0 = math.sin %x : !t
  %1 = affine.if affine_set<(d0) : (d0 - 4 >= 0)>(%n) -> !t {
    %2 = math.tanh %0 {device.scope = #dev} : !t
    affine.yield %2 : !t
  } else {
    affine.yield %0 : !t
  }
  return %1 : !t
}
