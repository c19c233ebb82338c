// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-inline

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @self(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {calls = false}>} {
  // expected-error @below {{functions for target opencl calls=false cannot call, and a recursive function cannot be inlined: 'self' -> 'self'}}
  // expected-note @below {{write it as a loop (scf.while), or leave out 'calls = false'}}
  %0 = call @self(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @first(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {calls = false}>} {
  %0 = call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @even(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {calls = false}>} {
  // expected-error @below {{cannot be inlined: 'even' -> 'odd' -> 'even'}}
  // expected-note @below {{'first' needs it at}}
  // expected-note @below {{write it as a loop}}
  %0 = call @odd(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @odd(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {calls = false}>} {
  %0 = call @even(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Three scalar functions of the host in a circle, called by a kernel: the host could call them.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#id = affine_map<(d0) -> (d0)>
func.func private @a(%x: f32) -> f32 attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = arith.addf %x, %x : f32
  // expected-error @below {{kernels cannot call, and a recursive function cannot be inlined: 'a' -> 'b' -> 'c' -> 'a'}}
  // expected-note @below {{'kernel' needs it at}}
  // expected-note @below {{write it as a loop (scf.while)}}
  %1 = call @b(%0) : (f32) -> f32
  return %1 : f32
}
func.func private @b(%x: f32) -> f32 attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @c(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @c(%x: f32) -> f32 attributes {device.scope = #host, device.target = #device.target<"cpu", {}>} {
  %0 = call @a(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @kernel(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev})
    attributes {device.scope = #dev, device.target = #device.target<"opencl", {}>} {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%v: f32, %out: f32):
    %1 = func.call @a(%v) : (f32) -> f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
