// RUN: devscope-opt %s --no-scope-aliases | filecheck %s
// RUN: devscope-opt %s --print-op-generic | devscope-opt --no-scope-aliases | filecheck %s
// RUN: devscope-opt %s | devscope-opt --no-scope-aliases | filecheck %s
// RUN: devscope-opt %s --no-scope-aliases --print-op-generic | filecheck %s --check-prefix=GENERIC

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0, "", "">
#open = #device.scope<"", -1, "", "">
#fast = #device.scope<"cuda", 1, #device.target<"cuda", {arch = "sm_90"}>, "global">

// CHECK-LABEL: func.func @captured_form(
// CHECK-SAME: %{{.*}}: tensor<4xf32> {device.scope = #device.scope<"opencl", 0 : i64, "", "">})
// CHECK-SAME: -> (tensor<4xf32> {device.scope = #device.scope<"cpu", 0 : i64, "", "">})
// CHECK-SAME: attributes {device.scope = #device.scope<"cpu", 0 : i64, "", "">, device.target = #device.target<"cpu", {opt = 3 : i64}>}
func.func @captured_form(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {opt = 3}>} {
  // CHECK: %[[T:.*]] = math.tanh %{{.*}} {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<4xf32>
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  // CHECK: device.device_copy %[[T]] from #device.scope<"opencl", 0 : i64, "", ""> to #device.scope<"cpu", 0 : i64, "", ""> : tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @annotations
func.func @annotations(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: device.on_device %{{.*}} on #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
  %0 = "device.on_device"(%x) {scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: device.on_device %{{.*}} on #device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_90"}>, "global"> {constrain_result = true} : tensor<4xf32>
  %1 = "device.on_device"(%0) {scope = #fast, constrain_result = true} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: device.on_device %{{.*}} on #device.scope<"", -1 : i64, "", ""> {constrain_body = false} : tensor<4xf32>
  %2 = "device.on_device"(%1) {scope = #open, constrain_body = false} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @regions
func.func @regions(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[R:.*]]:2 = "device.region"() ({
  // CHECK: math.exp
  // CHECK: "device.yield"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> ()
  // CHECK: }) {scope = #device.scope<"opencl", 0 : i64, "", "">} : () -> (tensor<4xf32>, tensor<4xf32>)
  %0:2 = "device.region"() ({
    %1 = math.exp %x : tensor<4xf32>
    "device.yield"(%1, %x) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) {scope = #dev} : () -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: "device.region"() ({
  // CHECK-NEXT: "device.yield"() : () -> ()
  "device.region"() ({
    "device.yield"() : () -> ()
  }) {scope = #host} : () -> ()
  // CHECK: return %[[R]]#0
  return %0#0 : tensor<4xf32>
}

// GENERIC: "func.func"() <{arg_attrs = [{device.scope = #device.scope<"opencl", 0 : i64, "", "">}]
// GENERIC: "math.tanh"(%{{.*}}) {{.*}}{device.scope = #device.scope<"opencl", 0 : i64, "", "">}
// GENERIC: "device.device_copy"(%{{.*}}) {dst = #device.scope<"cpu", 0 : i64, "", "">, src =
