// TVM's planner tests, https://github.com/apache/tvm tests/python/relay/test_pass_plan_devices.py: annotations.
// RUN: devscope-opt %s -p 'device-plan{default=cuda:0},device-verify' > %t.once
// RUN: filecheck %s < %t.once
// RUN: devscope-opt %t.once -p 'device-plan{default=cuda:0}' > %t.twice
// RUN: diff %t.once %t.twice

#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"cuda", 0 : i64, "", "">
!t = tensor<5x7xf32>
!image = tensor<1x8x6x6xf32>
!filter = tensor<8x8x3x3xf32>

// test_plain: everything takes the default.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V2:.*]] = arith.subf %[[V0]], %[[V1]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @plain(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = arith.addf %c, %d : !t
  %2 = arith.subf %0, %1 : !t
  func.return %2 : !t
}

// test_left_add_on_cpu: one copy, of the first add.
// CHECK-LABEL: func.func @left_add_on_cpu(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @left_add_on_cpu(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %c, %d : !t
  %3 = arith.subf %1, %2 : !t
  func.return %3 : !t
}

// test_left_add_on_cpu_via_copy: the user's copy is kept, and says where its operand is.
// CHECK-LABEL: func.func @left_add_on_cpu_via_copy(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @left_add_on_cpu_via_copy(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.device_copy"(%0) {src = #cpu, dst = #gpu} : (!t) -> !t
  %2 = arith.addf %c, %d : !t
  %3 = arith.subf %1, %2 : !t
  func.return %3 : !t
}

// test_both_adds_on_cpu: an annotation never constrains what uses the value.
// CHECK-LABEL: func.func @both_adds_on_cpu(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[C]], %[[D]]
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V1]], %[[V3]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @both_adds_on_cpu(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = arith.addf %c, %d : !t
  %2 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %3 = "device.on_device"(%1) {scope = #cpu} : (!t) -> !t
  %4 = arith.subf %2, %3 : !t
  func.return %4 : !t
}

// test_sharing: one copy serves both uses, where TVM makes two.
// CHECK-LABEL: func.func @sharing(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.subf %[[V1]], %[[V1]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @sharing(%a: !t, %b: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %3 = arith.subf %1, %2 : !t
  func.return %3 : !t
}

// test_let_on_cpu: the scope flows from the use back to the definition.
// CHECK-LABEL: func.func @let_on_cpu(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.addf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @let_on_cpu(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %l = arith.addf %a, %b : !t
  %r = arith.addf %c, %d : !t
  %0 = "device.on_device"(%l) {scope = #cpu} : (!t) -> !t
  %1 = arith.subf %0, %r : !t
  func.return %1 : !t
}

// test_device_copy: the constant is made where it is used.
// CHECK-LABEL: func.func @device_copy(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[X]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[CST:.*]] = arith.constant {device.scope = #cuda0} dense<1.000000e+00>
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[V0]], %[[CST]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @device_copy(%x: !t) -> !t {
  %0 = "device.device_copy"(%x) {src = #cpu, dst = #gpu} : (!t) -> !t
  %c = arith.constant dense<1.0> : !t
  %1 = arith.addf %0, %c : !t
  func.return %1 : !t
}

// test_dynamic_input: unknown sizes change nothing.
// CHECK-LABEL: func.func @dynamic_input(
// CHECK-SAME:    %[[X0:\w+]]: tensor<?x?xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[X1:\w+]]: tensor<?x?xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<?x?xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X0]], %[[X1]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V0]]
// CHECK-NEXT:  }
func.func @dynamic_input(%x0: tensor<?x?xf32>, %x1: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = arith.addf %x0, %x1 : tensor<?x?xf32>
  func.return %0 : tensor<?x?xf32>
}

// test_redundant_annotation: two annotations of one value are one copy, where TVM makes two.
// CHECK-LABEL: func.func @redundant_annotation(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Z:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = arith.subf %[[V1]], %[[Z]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[V2]], %[[V1]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @redundant_annotation(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.subf %1, %z : !t
  %3 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %4 = arith.addf %2, %3 : !t
  func.return %4 : !t
}

// test_annotate_expr: the outer annotation fixes the function's result, against the default.
// CHECK-LABEL: func.func @annotate_expr(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[Z:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X]], %[[Y]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V2:.*]] = arith.subf %[[V1]], %[[Z]]
// CHECK-NEXT:    return %[[V2]]
// CHECK-NEXT:  }
func.func @annotate_expr(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  %1 = "device.on_device"(%0) {scope = #gpu} : (!t) -> !t
  %2 = arith.subf %1, %z : !t
  %3 = "device.on_device"(%2) {scope = #cpu} : (!t) -> !t
  func.return %3 : !t
}

// test_annotate_all: everything is on the CPU, and no annotation is left.
// CHECK-LABEL: func.func @annotate_all(
// CHECK-SAME:    %[[X:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Y:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[Z:\w+]]: tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:    %[[V1:.*]] = arith.subf %[[V0]], %[[Z]]
// CHECK-NEXT:    return %[[V1]]
// CHECK-NEXT:  }
func.func @annotate_all(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = arith.addf %x, %y : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.subf %1, %z : !t
  %3 = "device.on_device"(%2) {scope = #cpu} : (!t) -> !t
  func.return %3 : !t
}

// test_conv_network: only the addition is on the GPU.
// CHECK-LABEL: func.func @conv_network(
// CHECK-SAME:    %[[DATA1:\w+]]: tensor<1x8x6x6xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[DATA2:\w+]]: tensor<1x8x6x6xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[WEIGHT:\w+]]: tensor<8x8x3x3xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<1x8x6x6xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = "ml.conv2d"(%[[DATA1]], %[[WEIGHT]])
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = "ml.conv2d"(%[[DATA2]], %[[WEIGHT]])
// CHECK-NEXT:    %[[V3:.*]] = device.device_copy %[[V2]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V4:.*]] = arith.addf %[[V1]], %[[V3]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V5:.*]] = device.device_copy %[[V4]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V6:.*]] = "ml.conv2d"(%[[V5]], %[[WEIGHT]])
// CHECK-NEXT:    return %[[V6]]
// CHECK-NEXT:  }
func.func @conv_network(%data1: !image, %data2: !image, %weight: !filter) -> !image {
  %0 = "ml.conv2d"(%data1, %weight) : (!image, !filter) -> !image
  %1 = "ml.conv2d"(%data2, %weight) : (!image, !filter) -> !image
  %2 = "device.on_device"(%0) {scope = #cpu} : (!image) -> !image
  %3 = "device.on_device"(%1) {scope = #cpu} : (!image) -> !image
  %4 = arith.addf %2, %3 : !image
  %5 = "device.on_device"(%4) {scope = #gpu} : (!image) -> !image
  %6 = "ml.conv2d"(%5, %weight) : (!image, !filter) -> !image
  %7 = "device.on_device"(%6) {scope = #cpu} : (!image) -> !image
  func.return %7 : !image
}

// test_tuple_get_item: one result of several is copied, not all of them.
// CHECK-LABEL: func.func @tuple_get_item(
// CHECK-SAME:    %[[X:\w+]]: tensor<9x7xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<3x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]]:3 = "ml.split"(%[[X]])
// CHECK-NEXT:    %[[V1:.*]] = device.device_copy %[[V0]]#0 from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V0]]#1 from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V1]], %[[V2]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @tuple_get_item(%x: tensor<9x7xf32>) -> tensor<3x7xf32> {
  %t:3 = "ml.split"(%x) : (tensor<9x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>)
  %0 = "device.on_device"(%t#0) {scope = #cpu} : (tensor<3x7xf32>) -> tensor<3x7xf32>
  %1 = "device.on_device"(%t#1) {scope = #cpu} : (tensor<3x7xf32>) -> tensor<3x7xf32>
  %2 = arith.subf %0, %1 : tensor<3x7xf32>
  func.return %2 : tensor<3x7xf32>
}

// test_unpropagatable_graph: two branches on two devices, one of them where the result is.
// CHECK-LABEL: func.func @unpropagatable_graph(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0},
// CHECK-SAME:    %[[D:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[V0:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V1:.*]] = arith.mulf %[[C]], %[[D]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #cuda0 to #cpu0
// CHECK-NEXT:    %[[V3:.*]] = arith.subf %[[V0]], %[[V2]]
// CHECK-NEXT:    return %[[V3]]
// CHECK-NEXT:  }
func.func @unpropagatable_graph(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = arith.mulf %c, %d : !t
  %2 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %3 = "device.on_device"(%1) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %2, %3 : !t
  %5 = "device.on_device"(%4) {scope = #cpu} : (!t) -> !t
  func.return %5 : !t
}

// test_conflicated_inputs (apache/tvm#15019): %b stays with its first user and is copied for the second.
// CHECK-LABEL: func.func @conflicated_inputs(
// CHECK-SAME:    %[[A:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[B:\w+]]: tensor<5x7xf32> {device.scope = #cpu0},
// CHECK-SAME:    %[[C:\w+]]: tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-SAME:    -> (tensor<5x7xf32> {device.scope = #cuda0})
// CHECK-NEXT:    %[[V0:.*]] = device.device_copy %[[B]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V1:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:    %[[V2:.*]] = device.device_copy %[[V1]] from #cpu0 to #cuda0
// CHECK-NEXT:    %[[V3:.*]] = arith.addf %[[V0]], %[[C]] {device.scope = #cuda0}
// CHECK-NEXT:    %[[V4:.*]] = arith.subf %[[V2]], %[[V3]] {device.scope = #cuda0}
// CHECK-NEXT:    return %[[V4]]
// CHECK-NEXT:  }
func.func @conflicated_inputs(%a: !t, %b: !t, %c: !t) -> !t {
  %0 = arith.addf %a, %b : !t
  %1 = "device.on_device"(%0) {scope = #cpu} : (!t) -> !t
  %2 = arith.addf %b, %c : !t
  %3 = "device.on_device"(%2) {scope = #gpu} : (!t) -> !t
  %4 = arith.subf %1, %3 : !t
  func.return %4 : !t
}
