// RUN: devscope-opt %s -p device-plan --verify-diagnostics
// Attributes that nobody reads where they stand are warnings.

#dev = #device.scope<"opencl", 0 : i64, "", "">
// expected-warning @+2 {{'builtin.module': attribute 'device.target' has no meaning here, only on functions}}
// expected-warning @+1 {{'builtin.module': attribute 'device.scope' has no meaning on a module; write it on functions, or say the default scope}}
module attributes {device.target = #device.target<"cpu", {}>, device.scope = #dev} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {device.target = #device.target<"cpu", {}>} {
    // expected-warning @+1 {{'math.absf': attribute 'device.target' has no meaning here, only on functions; 'device.scope' places operations, and has a target as its third part}}
    %0 = math.absf %x {device.target = #device.target<"opencl", {}>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // expected-warning @+2 {{'func.func': argument 0, attribute 'device.target' has no meaning here, only on functions; 'device.scope' places arguments, and has a target as its third part}}
  // expected-warning @+1 {{'func.func': result 0, attribute 'device.kernel' has no meaning here, only on functions; 'device.scope' places results}}
  func.func @f(%x: tensor<4xf32> {device.target = #device.target<"cpu", {}>}) -> (tensor<4xf32> {device.kernel}) {
    return %x : tensor<4xf32>
  }
}
