// What an xDSL-only user sees: plain xdsl-opt finds the dialect through its plugin entry point.
// RUN: %python -m xdsl.tools.xdsl_opt %s | filecheck %s
// RUN: %python -m xdsl.tools.xdsl_opt %s | %python -m xdsl.tools.xdsl_opt | filecheck %s
// RUN: %python -m xdsl.tools.xdsl_opt %s --print-op-generic | %python -m xdsl.tools.xdsl_opt | filecheck %s
// RUN: %python -m xdsl.tools.xdsl_opt %s -p canonicalize,cse | filecheck %s --check-prefix=CANON

#dev = #device.scope<"opencl", 0>
#host = #device.scope<"cpu">

// CHECK-LABEL: func.func @main(%x: tensor<4xf32> {device.scope = #device.scope<"opencl", 0 : i64, "", "">})
// CANON-LABEL: func.func @main
func.func @main(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %0 = device.on_device %x on #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
  // CANON-NEXT: %0 = device.on_device
  %0 = device.on_device %x on #dev : tensor<4xf32>
  // CHECK-NEXT: %1 = device.on_device %0 on #device.scope<"cpu", -1 : i64, "", ""> {constrain_result = true} : tensor<4xf32>
  // CANON-NEXT: %1 = device.on_device
  %1 = device.on_device %0 on #host {constrain_result = true} : tensor<4xf32>
  // CHECK-NEXT: %2 = device.device_copy %1 from #device.scope<"cpu", -1 : i64, "", ""> to #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
  // CANON-NEXT: %2 = device.device_copy %1 from
  %2 = device.device_copy %1 from #host to #dev : tensor<4xf32>
  // CHECK-NEXT: %3 = device.device_copy %1 from
  %3 = device.device_copy %1 from #host to #dev : tensor<4xf32>
  // CHECK-NEXT: %4 = device.device_copy %3 from #device.scope<"opencl", 0 : i64, "", ""> to #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
  %4 = device.device_copy %3 from #dev to #dev : tensor<4xf32>
  // CHECK-NEXT: %5 = device.region on #device.scope<"opencl", 0 : i64, "", ""> -> tensor<4xf32> {
  // CHECK-NEXT:   device.yield %2 : tensor<4xf32>
  // CHECK-NEXT: } {note}
  // CANON-NEXT: %{{.*}} = device.region
  %5 = device.region on #dev -> tensor<4xf32> {
    device.yield %2 : tensor<4xf32>
  } {note}
  // CHECK-NEXT: device.region on #device.scope<"cpu", -1 : i64, "", ""> {
  // CHECK-NEXT: }
  device.region on #host {
  }
  // CANON: func.return %2, %2,
  func.return %2, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @launch
// CANON-LABEL: func.func @launch
func.func @launch(%a: f32, %t: tensor<?xf32>, %u: tensor<4xi32>, %n: index) -> tensor<?xf32> {
  // CHECK-NEXT: %0 = device.launch @kernel(%n, %n, %n, %n, %n, %n) {
  // CHECK-NEXT:   device.in %a : f32
  // CHECK-NEXT:   device.out %t : tensor<?xf32>
  // CHECK-NEXT: } attributes {device.scope = #device.scope<"opencl", 0 : i64, "", "">} -> tensor<?xf32>
  // CANON-NEXT: %0 = device.launch
  %0 = device.launch @kernel(%n, %n, %n, %n, %n, %n) {
    device.in %a : f32
    device.out %t : tensor<?xf32>
  } attributes {device.scope = #dev} -> tensor<?xf32>
  // CHECK-NEXT: %1, %2 = device.launch @kernel(%n, %n, %n, %n, %n, %n, %n) {
  // CHECK-NEXT:   device.out %0 : tensor<?xf32>
  // CHECK-NEXT:   device.out %u : tensor<4xi32>
  // CHECK-NEXT: } -> tensor<?xf32>, tensor<4xi32>
  %1, %2 = device.launch @kernel(%n, %n, %n, %n, %n, %n, %n) {
    device.out %0 : tensor<?xf32>
    device.out %u : tensor<4xi32>
  } -> tensor<?xf32>, tensor<4xi32>
  func.return %1 : tensor<?xf32>
}
