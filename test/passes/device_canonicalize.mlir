// RUN: devscope-opt %s -p 'device-canonicalize,device-verify' --split-input-file | filecheck %s

// Copies that other passes leave behind: there and back, over a third device, twice, for nobody, of a constant.

#host = #device.scope<"cpu", 0 : i64, "", "">
#dev  = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">

// CHECK-LABEL: func.func @there_and_back
// CHECK-NOT:     device_copy
// CHECK:         math.tanh %arg0
func.func @there_and_back(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev} {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.tanh %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The direct copy stands where the first one stood, outside of the loop.
// CHECK-LABEL: func.func @over_the_host
// CHECK-NEXT:    %[[COPY:.*]] = device.device_copy %arg0 from #opencl0 to #opencl1
// CHECK-NEXT:    scf.for {{.*}} {
// CHECK-NEXT:      "ml.use"(%[[COPY]]) {device.scope = #opencl1}
func.func @over_the_host(%x: tensor<4xf32> {device.scope = #dev}, %n: index) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  scf.for %i = %n to %n step %n {
    %1 = "device.device_copy"(%0) {src = #host, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%1) {device.scope = #dev1} : (tensor<4xf32>) -> ()
  }
  return
}

// CHECK-LABEL: func.func @over_the_host_which_needs_it
// CHECK-COUNT-2: device_copy
func.func @over_the_host_which_needs_it(%x: tensor<4xf32> {device.scope = #dev}) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%0) : (tensor<4xf32>) -> ()
  "ml.use"(%1) {device.scope = #dev1} : (tensor<4xf32>) -> ()
  return
}

// A copy in one branch does not serve the other.
// CHECK-LABEL: func.func @repeated
// CHECK-NEXT:    %[[COPY:.*]] = device.device_copy
// CHECK-NEXT:    "ml.use"(%[[COPY]])
// CHECK-NEXT:    "ml.use"(%[[COPY]])
// CHECK-NEXT:    scf.if
// CHECK-COUNT-2: device.device_copy %arg0 from #opencl0 to #opencl1
// CHECK-NOT:     device_copy
func.func @repeated(%x: tensor<4xf32> {device.scope = #dev}, %p: i1) {
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "device.device_copy"(%x) {src = #dev, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%0) : (tensor<4xf32>) -> ()
  "ml.use"(%1) : (tensor<4xf32>) -> ()
  scf.if %p {
    %3 = "device.device_copy"(%x) {src = #dev, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%3) {device.scope = #dev1} : (tensor<4xf32>) -> ()
  } else {
    %3 = "device.device_copy"(%x) {src = #dev, dst = #dev1} : (tensor<4xf32>) -> tensor<4xf32>
    "ml.use"(%3) {device.scope = #dev1} : (tensor<4xf32>) -> ()
  }
  return
}

// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %[[HERE:.*]] = arith.constant dense<1.000000e+00>
// CHECK-NEXT:    %[[THERE:.*]] = arith.constant {device.scope = #opencl0} dense<1.000000e+00>
// CHECK-NEXT:    "ml.use"(%[[HERE]]) :
// CHECK-NEXT:    "ml.use"(%[[THERE]]) {device.scope = #opencl0}
func.func @constants() {
  %0 = arith.constant dense<1.0> : tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  "ml.use"(%0) : (tensor<4xf32>) -> ()
  "ml.use"(%1) {device.scope = #dev} : (tensor<4xf32>) -> ()
  return
}

// xDSL's canonicalization of branches merges the blocks; what stood in them stays where it was.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %arg0, %arg0 {device.scope = #opencl0}
// CHECK-NEXT:    %[[COPY:.*]] = device.device_copy %[[SUM]] from
// CHECK-NEXT:    %[[NEG:.*]] = arith.negf %[[COPY]] :
// CHECK-NEXT:    return %[[NEG]]
func.func @branches(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host}) {
  %true = arith.constant true
  cf.cond_br %true, ^a(%x : tensor<4xf32>), ^b(%x : tensor<4xf32>)
^a(%y: tensor<4xf32>):
  %0 = arith.addf %y, %y {device.scope = #dev} : tensor<4xf32>
  cf.br ^b(%0 : tensor<4xf32>)
^b(%z: tensor<4xf32>):
  %1 = "device.device_copy"(%z) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = arith.negf %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// xDSL's patterns for loops take operations that it does not know for constants. They stay in their loop.
// CHECK-LABEL: func.func @unknown_in_a_loop
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "ml.use"(%arg0) {device.scope = #opencl0}
func.func @unknown_in_a_loop(%x: tensor<4xf32> {device.scope = #dev}, %n: index) {
  scf.for %i = %n to %n step %n {
    "ml.use"(%x) {device.scope = #dev} : (tensor<4xf32>) -> ()
  }
  return
}
