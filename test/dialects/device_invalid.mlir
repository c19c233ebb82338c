// RUN: devscope-opt %s --split-input-file --verify-diagnostics

#dev = #device.scope<"opencl", 0, "", "">
func.func @no_destination(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute "dst" is expected but not provided}}
  %0 = "device.device_copy"(%x) {src = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

#dev = #device.scope<"opencl", 0, "", "">
func.func @no_source(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute "src" is expected but not provided}}
  %0 = "device.device_copy"(%x) {dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

#dev = #device.scope<"opencl", 0, "", "">
func.func @not_a_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected base attribute 'device.scope' but got 'builtin.string'}}
  %0 = "device.device_copy"(%x) {src = #dev, dst = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

#dev = #device.scope<"opencl", 0, "", "">
func.func @other_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'tensor<4xf32>' but got 'tensor<4xf64>'}}
  %0 = "device.on_device"(%x) {scope = #dev} : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

func.func @no_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute "scope" is expected but not provided}}
  "device.region"() ({
    "device.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @unknown_op(%x: tensor<4xf32>) {
  // expected-error @+1 {{unregistered operation 'device.on'}}
  %0 = "device.on"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{expected 4 type arguments, but had 2}}
#short = #device.scope<"opencl", 0>

// -----

// expected-error @+1 {{the dialect 'device' has no attribute 'scop'}}
#misspelled = #device.scop<"opencl", 0, "", "">

// -----

func.func @published_tensor(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected base type 'builtin.memref' but got 'builtin.tensor'}}
  "device.publish"(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @flush_of_nothing() {
  // expected-error @+1 {{attribute "slot" is expected but not provided}}
  "device.flush"() : () -> ()
  return
}
