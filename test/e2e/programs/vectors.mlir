// Vectors outside of computations are registers of the host: tensors of a device are copied to and from them.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @twice(%v: vector<4xf32>) -> vector<4xf32> {
  %0 = arith.addf %v, %v : vector<4xf32>
  return %0 : vector<4xf32>
}
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<1xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %y = math.absf %x {device.scope = #dev} : tensor<8xf32>
  %v = vector.transfer_read %y[%c2], %zero : tensor<8xf32>, vector<4xf32>
  %w = call @twice(%v) : (vector<4xf32>) -> vector<4xf32>
  %z = vector.transfer_write %w, %y[%c0] : vector<4xf32>, tensor<8xf32>
  %e = vector.extract %w[1] : f32 from vector<4xf32>
  %r = arith.addf %z, %y {device.scope = #dev} : tensor<8xf32>
  %s = tensor.from_elements %e : tensor<1xf32>
  return %r, %s : tensor<8xf32>, tensor<1xf32>
}
