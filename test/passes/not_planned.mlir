// RUN: not devscope-opt %s -p device-split 2>&1 | filecheck %s --check-prefix=PLAN
// RUN: not devscope-opt %s -p device-verify 2>&1 | filecheck %s --check-prefix=VERIFY
// RUN: not devscope-opt %s -p device-plan,device-overlap 2>&1 | filecheck %s --check-prefix=SPLIT
// Passes that need a plan, or a split module, say so when there is none.
// PLAN: {{[0-9]+}}:1: error: argument #0 of @main needs 'device.scope' with a device type and an id; it is missing
// PLAN: note: 'device-{{split|move-copies}}' is for planned modules: run device-plan before it
// VERIFY: error: argument #0 of @main needs 'device.scope'
// VERIFY-NEXT: note: device-plan gives every argument and result a scope
// SPLIT: error: function 'main' has no 'device.target'; device-bind-target gives it one
// SPLIT: note: 'device-{{.*}}' is for split modules: run device-plan and device-split before it
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
