// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-split

// What is defined elsewhere cannot be for a device.

// expected-error@+1 {{function 'elsewhere' has no body and is for target 'opencl'}}
func.func private @elsewhere() attributes {device.target = #device.target<"opencl", {}>}

// -----

// The host part of a target is the host's.

// expected-error@+1 {{the host part of the target of 'f' is 'opencl', a device's}}
func.func @f() attributes {device.target = #device.target<"opencl", {}>, device.host_target = #device.target<"opencl", {}>} {
  return
}

// -----

// A function that is all on one device cannot be for another.

#dev = #device.scope<"opencl", 0 : i64, "", "">
// expected-error@+1 {{function 'f' is for target 'cuda', but runs on opencl:0}}
func.func private @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.target = #device.target<"cuda", {}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
