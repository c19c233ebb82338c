// RUN: devscope-opt %s -p 'device-plan,device-verify,device-split' --split-input-file --verify-diagnostics
// What is no tensor cannot be on a device once its code is a function of its own.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @read(%x: tensor<8xf32>, %i: index, %p: f32) -> f32 {
  // expected-error @+1 {{'vector.transfer_read' has vectors on opencl:0; only tensors can be there}}
  %v = vector.transfer_read %x[%i], %p {device.scope = #dev} : tensor<8xf32>, vector<4xf32>
  %e = vector.extract %v[1] : f32 from vector<4xf32>
  return %e : f32
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @box(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'rt.box' has a value of type !rt.box on opencl:0; only tensors can be there}}
  %0 = "rt.box"(%x) {device.scope = #dev} : (tensor<8xf32>) -> !rt.box
  %1 = "rt.unbox"(%0) : (!rt.box) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @unranked(%x: tensor<6xf32>, %shape: tensor<?xindex>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'tensor.reshape' on opencl:0 takes a shape that is a tensor on the host, not scalars}}
  %0 = tensor.reshape %x(%shape) {device.scope = #dev} : (tensor<6xf32>, tensor<?xindex>) -> tensor<*xf32>
  %1 = tensor.cast %0 {device.scope = #dev} : tensor<*xf32> to tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
