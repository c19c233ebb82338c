// Explicit copies are kept unless they change nothing, go back, or repeat another.
// RUN: devscope-opt %s -p 'device-plan,device-verify' | filecheck %s
// RUN: devscope-opt %s -p 'device-plan' > %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
#dev2 = #device.scope<"opencl", 2 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// One copy per value and destination, however many use it.
// CHECK-LABEL: func.func @shared
// CHECK:         %[[S:.*]] = math.sin
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[S]] from #cpu0 to #opencl0
// CHECK-NEXT:    arith.addf %[[C]], %[[C]] {device.scope = #opencl0}
// CHECK-NEXT:    arith.mulf %[[C]], %{{.*}} {device.scope = #opencl0}
// CHECK-NOT:     #cpu0} : (tensor<4xf32>)
// CHECK:         return
func.func @shared(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.sin %x : tensor<4xf32>
  %1 = arith.addf %0, %0 {device.scope = #dev} : tensor<4xf32>
  %2 = arith.mulf %0, %1 {device.scope = #dev} : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// An explicit copy serves the uses that planning finds, and a second one is dropped.
// CHECK-LABEL: func.func @explicit
// CHECK:         %[[S:.*]] = math.sin
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[S]] from
// CHECK-NEXT:    math.exp %[[C]] {device.scope = #opencl0}
// CHECK-NEXT:    math.cos %[[C]] {device.scope = #opencl0}
// CHECK-NEXT:    return %[[C]]
func.func @explicit(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = math.sin %x : tensor<4xf32>
  %1 = math.exp %0 {device.scope = #dev} : tensor<4xf32>
  %2 = "device.device_copy"(%0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = math.cos %2 {device.scope = #dev} : tensor<4xf32>
  %4 = "device.device_copy"(%0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %1, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @no_op
// CHECK-NOT:     device_copy
// CHECK:         return
func.func @no_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.device_copy"(%x) {src = #host, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.sin %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @there_and_back
// CHECK-NOT:     device_copy
// CHECK:         return
func.func @there_and_back(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.sin %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A copy by way of a scope where nothing uses it goes there directly, however long the way.
// CHECK-LABEL: func.func @staged
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[D:.*]] = device.device_copy %[[X]] from #opencl0 to #opencl2
// CHECK-NEXT:    math.sin %[[D]] {device.scope = #opencl2}
func.func @staged(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "device.device_copy"(%1) {src = #dev1, dst = #dev2} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = math.sin %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Where something does use it, the copies stay as they were written.
// CHECK-LABEL: func.func @used_on_the_way
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[H:.*]] = device.device_copy %[[X]] from #opencl0 to #cpu0
// CHECK-NEXT:    %[[D:.*]] = device.device_copy %[[H]] from #cpu0 to #opencl1
// CHECK-NEXT:    math.sin %[[D]] {device.scope = #opencl1}
// CHECK-NEXT:    math.cos %[[H]] : tensor<4xf32>
func.func @used_on_the_way(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.sin %1 : tensor<4xf32>
  %3 = math.cos %0 : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// A copy that planning adds goes on from where the data was before; equal ones are one.
// CHECK-LABEL: func.func @continued
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK-NEXT:    %[[D:.*]] = device.device_copy %[[X]] from #opencl0 to #opencl1
// CHECK-NEXT:    math.sin %[[D]] {device.scope = #opencl1}
// CHECK-NEXT:    math.cos %[[D]] {device.scope = #opencl1}
// CHECK-NEXT:    return
func.func @continued(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.sin %0 {device.scope = #dev1} : tensor<4xf32>
  %2 = math.cos %x {device.scope = #dev1} : tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// An explicit copy in a loop, of something that the loop does not change, leaves it.
// CHECK-LABEL: func.func @in_loop
// CHECK:         device.device_copy
// CHECK:         scf.for
// CHECK-NOT:     device_copy
// CHECK:         return
func.func @in_loop(%x: tensor<4xf32>, %n: index) {
  scf.for %k = %n to %n step %n {
    %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    "my.use"(%0) : (tensor<4xf32>) -> ()
  }
  return
}

// A memory scope is a scope of its own; one that is left open takes what is asked for.
// CHECK-LABEL: func.func @memories
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0_global})
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[X]] {device.scope = #opencl0_global}
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[E]] from #opencl0_global to #opencl0_texture
// CHECK-NEXT:    math.cos %[[E]] {device.scope = #opencl0_global}
// CHECK-NEXT:    math.sin %[[C]] {device.scope = #opencl0_texture}
func.func @memories(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = math.cos %0 {device.scope = #device.scope<"opencl", 0 : i64, "", "global">} : tensor<4xf32>
  %2 = math.sin %0 {device.scope = #device.scope<"opencl", 0 : i64, "", "texture">} : tensor<4xf32>
  "my.use"(%1) {device.scope = #device.scope<"opencl", 0 : i64, "", "global">} : (tensor<4xf32>) -> ()
  return %2 : tensor<4xf32>
}
