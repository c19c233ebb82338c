// RUN: %python %S/Inputs/opt.py %s -p 'device-partition{backends=host_lib:threads=2,acc},device-plan{arguments=host},device-verify,device-split,device-inline,device-sccp,device-unused,device-merge,device-verify,device-verify-split' | filecheck %s

// Planning puts copies around calls of a backend's device and drags no neighbour along: tanh's user is on the host.
// What comes after leaves the functions alone: body, unused argument and target.
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = math.tanh %0 : tensor<4x4xf32>
  %2 = math.exp %1 : tensor<4x4xf32>
  %3 = func.call @mine(%2, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func private @mine(%x: tensor<4x4xf32> {device.scope = #host}, %unused: tensor<4x4xf32> {device.scope = #host})
    -> (tensor<4x4xf32> {device.scope = #host})
    attributes {device.compiler = "host_lib", device.scope = #host, device.target = #device.target<"host_lib", {}>} {
  %dead = math.absf %x : tensor<4x4xf32>
  return %x : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[M:.*]] = call @main_host_lib_matmul(%{{.*}}) {device.call = "extern"}
// CHECK-NEXT:    %[[D:.*]] = device.device_copy %[[M]] from #cpu0 to #acc0
// CHECK-NEXT:    %[[T:.*]] = call @main_acc_tanh(%[[D]]) {device.call = "launch"}
// CHECK-NEXT:    %[[H:.*]] = device.device_copy %[[T]] from #acc0 to #cpu0
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[H]]
// CHECK-NEXT:    call @mine(%[[E]], %[[E]])
// CHECK:       func.func private @main_host_lib_matmul
// CHECK-SAME:    device.target = #device.target<"host_lib", {threads = 2 : i64}>
// CHECK:       func.func private @main_acc_tanh
// CHECK-SAME:    device.compiler = "acc"
// CHECK:         math.tanh
// CHECK:       func.func private @mine
// CHECK:         math.absf
