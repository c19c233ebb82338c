// TVM's planner tests, https://github.com/apache/tvm tests/python/relay/test_pass_plan_devices.py: memory scopes.
// RUN: devscope-opt %s -p 'device-plan,device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#cpu_a = #device.scope<"cpu", 0 : i64, "", "A">
#cpu_b = #device.scope<"cpu", 0 : i64, "", "B">
#any_a = #device.scope<"", -1 : i64, "", "A">
#any_b = #device.scope<"", -1 : i64, "", "B">
!t = tensor<128x128xf32>

// test_free_on_device: such an annotation permits a copy. %a, whose memory is open, takes B; %b is copied.
// CHECK-LABEL: func.func @on_scope_b(
// CHECK-SAME:    %[[X:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_B})
// CHECK-SAME:    -> (tensor<128x128xf32> {device.scope = #cpu0_B})
// CHECK-NEXT:    return %[[X]]
// CHECK-NEXT:  }
func.func @on_scope_b(%x: !t {device.scope = #cpu_b}) -> (!t {device.scope = #cpu_b}) {
  func.return %x : !t
}
// CHECK-LABEL: func.func @free_on_device(
// CHECK-SAME:    %[[A:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_B},
// CHECK-SAME:    %[[B:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_A},
// CHECK-SAME:    %[[C:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_B})
// CHECK-SAME:    -> (tensor<128x128xf32> {device.scope = #cpu0_A})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0_A to #cpu0_B
// CHECK-NEXT:    %[[V1:.*]] = call @on_scope_b(%[[A]])
// CHECK-NEXT:    %[[V2:.*]] = call @on_scope_b(%[[V0]])
// CHECK-NEXT:    %[[V3:.*]] = call @on_scope_b(%[[C]])
// CHECK-NEXT:    %[[V4:.*]] = arith.addf %[[V1]], %[[V2]] {device.scope = #cpu0_B}
// CHECK-NEXT:    %[[V5:.*]] = arith.addf %[[V4]], %[[V3]] {device.scope = #cpu0_B}
// CHECK-NEXT:    %[[V6:.*]] = device.device_copy %[[V5]] from #cpu0_B to #cpu0_A
// CHECK-NEXT:    return %[[V6]]
// CHECK-NEXT:  }
func.func @free_on_device(%a: !t {device.scope = #cpu}, %b: !t {device.scope = #cpu_a},
                          %c: !t {device.scope = #cpu_b}) -> (!t {device.scope = #cpu_a}) {
  %0 = "device.on_device"(%a) {scope = #cpu, constrain_body = false} : (!t) -> !t
  %1 = func.call @on_scope_b(%0) : (!t) -> !t
  %2 = "device.on_device"(%b) {scope = #cpu, constrain_body = false} : (!t) -> !t
  %3 = func.call @on_scope_b(%2) : (!t) -> !t
  %4 = "device.on_device"(%c) {scope = #cpu, constrain_body = false} : (!t) -> !t
  %5 = func.call @on_scope_b(%4) : (!t) -> !t
  %6 = arith.addf %1, %3 : !t
  %7 = arith.addf %6, %5 : !t
  %8 = "device.on_device"(%7) {scope = #cpu, constrain_body = false} : (!t) -> !t
  func.return %8 : !t
}

// test_lowered: memory scopes flow both ways, to %x and to the second argument of the lowered function.
// CHECK-LABEL: func.func private @gem(
// CHECK-SAME:    tensor<128x128xf32> {device.scope = #cpu0_A}, tensor<128x128xf32> {device.scope = #cpu0_B},
// CHECK-SAME:    tensor<128x128xf32> {device.scope = #cpu0_B})
// CHECK-SAME:    -> (tensor<128x128xf32> {device.scope = #cpu0_A}) attributes {device.lowered}
func.func private @gem(!t {device.scope = #any_a}, !t, !t {device.scope = #any_b}) -> (!t {device.scope = #any_a})
    attributes {device.lowered}
// CHECK-LABEL: func.func @lowered(
// CHECK-SAME:    %[[X:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_A},
// CHECK-SAME:    %[[Y:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_B},
// CHECK-SAME:    %[[Z:\w+]]: tensor<128x128xf32> {device.scope = #cpu0_A})
// CHECK-SAME:    -> (tensor<128x128xf32> {device.scope = #cpu0_B})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[Z]] from #cpu0_A to #cpu0_B
// CHECK-NEXT:    %[[V1:.*]] = call @gem(%[[X]], %[[Y]], %[[V0]])
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #cpu0_A to #cpu0_B
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @lowered(%x: !t {device.scope = #cpu}, %y: !t {device.scope = #cpu_b}, %z: !t {device.scope = #cpu_a})
    -> (!t {device.scope = #cpu_b}) {
  %0 = func.call @gem(%x, %y, %z) : (!t, !t, !t) -> !t
  func.return %0 : !t
}
