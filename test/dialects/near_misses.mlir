// RUN: devscope-opt %s -p device-plan --verify-diagnostics
// Attributes that are almost the dialect's, and scopes that place nothing, are warnings; other dialects' are no concern.

#dev = #device.scope<"opencl", 0 : i64, "", "">
// expected-warning @+2 {{'func.func': attribute 'device.targets' has no meaning to devscope; did you mean 'device.target'?}}
// expected-warning @+1 {{'func.func': argument 0, attribute 'device.scpe' has no meaning to devscope; did you mean 'device.scope'?}}
func.func private @g(%x: tensor<4xf32> {device.scpe = "a"}) -> tensor<4xf32>
    attributes {device.targets = 1 : i32, my.scope = #dev, kernel} {
  // expected-warning @+1 {{'math.absf': attribute 'scope' has no meaning to devscope; did you mean 'device.scope'?}}
  %0 = math.absf %x {scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %s: f32) -> (tensor<4xf32>, index) {
  // expected-warning @+1 {{'device.scope' on 'arith.constant' places nothing: its operands and results are scalars or vectors}}
  %c0 = arith.constant {device.scope = #dev} 0 : index
  // expected-warning @+1 {{'device.scope' on 'tensor.dim' places nothing: it asks for a shape or an address, on the host}}
  %n = tensor.dim {device.scope = #dev} %x, %c0 : tensor<4xf32>
  // expected-warning @+1 {{'math.absf': attribute 'devce.scope' has no meaning to devscope; did you mean 'device.scope'?}}
  %a = math.absf %x {devce.scope = #dev} : tensor<4xf32>
  // expected-warning @+1 {{'math.absf': attribute 'device.on_devce' has no meaning to devscope; did you mean the operation 'device.on_device'?}}
  %b = math.absf %a {device.on_devce = "opencl:0"} : tensor<4xf32>
  // expected-warning @+1 {{'device.scope' on 'arith.addf' places nothing: its operands and results are scalars or vectors}}
  %t = arith.addf %s, %s {device.scope = #dev} : f32
  // expected-warning @+1 {{'device.on_device' places nothing: its operand is a scalar or vector, which is on the host}}
  %u = device.on_device %s on #dev : f32
  %c = "other.op"(%b, %t) {scope = "global", gpu.scope = 1, gpu.target = #dev, devices = 3, device = "x",
    tf.device = "/cpu:0", target = "t", dev.ice = 1, my.scope = #dev, home = #dev} : (tensor<4xf32>, f32) -> tensor<4xf32>
  // expected-warning @+1 {{'math.absf': attribute 'device_scope' has no meaning to devscope; did you mean 'device.scope'?}}
  %d = math.absf %c {device_scope = #dev, device.scope = #dev} : tensor<4xf32>
  %e = call @g(%d) {device.scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  // A loop's scope places what is in it.
  %one = arith.constant 1 : index
  %f = scf.for %i = %c0 to %n step %one iter_args(%z = %e) -> tensor<4xf32> {
    %y = math.absf %z : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  } {device.scope = #dev}
  return %f, %n : tensor<4xf32>, index
}
