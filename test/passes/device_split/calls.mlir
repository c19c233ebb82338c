// RUN: devscope-opt %s --split-input-file -p device-split,device-verify-split | filecheck %s

// The targets of caller and callee decide: host code is called, other code for one device is external, another
// device is launched. A function that is both launched and external to somebody gets a copy.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#far = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @report(f32)
func.func private @helper(%s: f32) {
  call @report(%s) : (f32) -> ()
  return
}
func.func private @slim(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.target = #device.target<"opencl", {workgroup = 32 : i64}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @plain(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @net(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = call @plain(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @slim(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = #dev}, %y: tensor<4xf32> {device.scope = #far}, %s: f32)
    -> (tensor<4xf32> {device.scope = #dev}, tensor<4xf32> {device.scope = #far}) {
  call @helper(%s) : (f32) -> ()
  %0 = call @net(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.exp %y {device.scope = #far} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @second(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = call @slim(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func private @helper
// CHECK-NEXT:    call @report(%arg0) : (f32) -> ()
// CHECK-LABEL: func.func private @slim(
// CHECK-SAME:    {device.kernel, device.noalias,
// CHECK-LABEL: func.func private @slim_extern(
// CHECK-SAME:    {device.noalias, device.scope = #opencl0, device.target = #device.target<"opencl", {workgroup = 32 : i64}>}
// CHECK-LABEL: func.func private @plain
// CHECK-SAME:    {device.noalias,
// CHECK-LABEL: func.func private @net
// CHECK-SAME:    {device.kernel, device.noalias,
// CHECK-NEXT:    [[P:%.*]] = call @plain(%arg0) : (
// CHECK-NEXT:    [[S:%.*]] = call @slim_extern([[P]]) {device.call = "extern"} : (
// CHECK-NEXT:    return [[S]]
// CHECK-LABEL: func.func @main
// CHECK-DAG:     call @net(%arg0) {device.call = "launch"} : (
// CHECK-DAG:     call @main_opencl1_0(%arg1) {device.call = "launch"} : (
// CHECK-DAG:     call @helper(%arg2) : (
// CHECK-LABEL: func.func @second
// CHECK-NEXT:    call @slim(%arg0) {device.call = "launch"} : (
