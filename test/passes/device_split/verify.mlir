// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-verify-split

// What device-split makes of a program keeps the promises: a plain, an external and a launching call.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#cpu = #device.target<"cpu", {}>
#wide = #device.target<"opencl", {workgroup = 128 : i64}>
#slim = #device.target<"opencl", {workgroup = 32 : i64}>
func.func private @log(f32) attributes {device.scope = #host, device.target = #cpu}
func.func private @same(%x: f32) -> f32 attributes {device.scope = #dev, device.target = #wide} {
  return %x : f32
}
func.func private @other(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #slim} {
  return %x : tensor<4xf32>
}
func.func private @piece(%x: tensor<4xf32> {device.scope = #dev}, %s: f32) -> (tensor<4xf32> {device.scope = #dev}, f32)
    attributes {device.scope = #dev, device.target = #wide} {
  %0 = call @other(%x) {device.call = "extern"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @same(%s) : (f32) -> f32
  return %0, %1 : tensor<4xf32>, f32
}
func.func @main(%x: tensor<4xf32> {device.scope = #dev}, %s: f32) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #host, device.target = #cpu} {
  %0:2 = call @piece(%x, %s) {device.call = "launch"} : (tensor<4xf32>, f32) -> (tensor<4xf32>, f32)
  call @log(%0#1) : (f32) -> ()
  return %0#0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{function 'f' has no 'device.target'; device-bind-target gives it one}}
func.func private @f()

// -----

// expected-error@+1 {{function 'f' needs 'device.scope' with a device type and an id}}
func.func private @f() attributes {device.target = #device.target<"cpu", {}>}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
// expected-error@+1 {{function 'f' is for target 'opencl' and must be private}}
func.func @f() attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
// expected-error@+1 {{function 'f' is for target 'opencl' and needs a body}}
func.func private @f() attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  // expected-error@+1 {{only the host can do 'device.device_copy', but it stands in code for opencl:0}}
  %0 = "device.device_copy"(%x) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @f(%n: index) attributes {device.scope = #dev, device.target = #device.target<"opencl", {workgroup = 8 : i64}>} {
  // expected-error@+1 {{only the host can do 'memref.alloc', but it stands in code for opencl:0 <opencl workgroup=8 : i64>}}
  %0 = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  // expected-error@+1 {{'math.tanh' runs on opencl:0, but stands in code for cpu:0}}
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @f() attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  // expected-error@+1 {{'device.region' must not remain after the split}}
  "device.region"() ({
    "device.yield"() : () -> ()
  }) {scope = #dev} : () -> ()
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @log(f32) attributes {device.scope = #host, device.target = #device.target<"cpu", {}>}
func.func private @f(%x: f32) attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  // expected-error@+2 {{'log' is called by code for opencl:0, but runs on the host}}
  // expected-note@+1 {{put the operation with the call there, or the callee's body in place of the call}}
  call @log(%x) : (f32) -> ()
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#far = #device.scope<"opencl", 1 : i64, "", "">
func.func private @g() attributes {device.scope = #far, device.target = #device.target<"opencl", {}>} {
  return
}
func.func private @f() attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  // expected-error@+2 {{'g' is called by code for opencl:0, but runs on opencl:1}}
  // expected-note@+1 {{put the operation with the call there, or the callee's body in place of the call}}
  call @g() : () -> ()
  return
}

// -----

// A kernel is compiled as a whole.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @g(%x: f32) -> f32 attributes {device.scope = #dev, device.target = #device.target<"opencl", {workgroup = 8 : i64}>} {
  return %x : f32
}
func.func private @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %0 = linalg.map ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) (%a: f32, %i: f32) {
    // expected-error@+2 {{'g' is called by code for opencl:0, but runs on opencl:0 <opencl workgroup=8 : i64>}}
    // expected-note@+1 {{put the operation with the call there, or the callee's body in place of the call}}
    %p = func.call @g(%a) : (f32) -> f32
    linalg.yield %p : f32
  }
  return %0 : tensor<4xf32>
}

// -----

#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @g() attributes {device.scope = #host, device.target = #device.target<"cpu", {}>}
func.func @f() attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  // expected-error@+1 {{'device.call' is "launch", but the targets say that this is a plain call}}
  call @g() {device.call = "launch"} : () -> ()
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
// expected-error@+2 {{function 'both' is launched and called as an external function, too}}
// expected-note@+1 {{give one of the calls a copy of the function}}
func.func private @both() attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  return
}
func.func private @piece() attributes {device.scope = #dev, device.target = #device.target<"opencl", {workgroup = 8 : i64}>} {
  // expected-note@+1 {{it is called by code for another target here}}
  call @both() : () -> ()
  return
}
func.func @main() attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  // expected-note@+1 {{it is launched here}}
  call @both() : () -> ()
  return
}

// -----

// A launch stands in code for the device and target of its kernel.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#wide = #device.target<"opencl", {workgroup = 128 : i64}>
#slim = #device.target<"opencl", {workgroup = 32 : i64}>
func.func private @k(%x: memref<4xf32>) attributes {device.kernel, device.scope = #dev, device.target = #wide} {
  return
}
func.func private @good(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #wide} {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @bad(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #slim} {
  // expected-error @+1 {{kernel 'k' is for opencl:0 <opencl workgroup=128 : i64>, but is launched in code for opencl:0 <opencl workgroup=32 : i64>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @k(%x: memref<4xf32>)
    attributes {device.kernel, device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  return
}
func.func @main(%x: tensor<4xf32> {device.scope = #host}, %n: index) -> (tensor<4xf32> {device.scope = #host})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  // expected-error @+1 {{kernel 'k' is for opencl:0, but is launched in code for cpu:0}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Kernels have targets, too.

// expected-error @+1 {{function 'k' has no 'device.target'}}
func.func private @k(%x: memref<4xf32>) attributes {device.kernel} {
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @piece(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  // expected-error @+1 {{'k' is launched, but the module has no such function}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
