// Scalars read from device tensors at fixed and computed places, combined on the host, sent back as a tensor.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3xf32>, %i: index) -> (f32, tensor<2xf32>, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = math.exp %x {device.scope = #dev} : tensor<?x3xf32>
  %a = tensor.extract %0[%c0, %c2] : tensor<?x3xf32>
  %b = tensor.extract %0[%i, %c1] : tensor<?x3xf32>
  %sum = arith.addf %a, %b : f32
  %pair = tensor.from_elements %sum, %b : tensor<2xf32>
  %1 = math.log %pair {device.scope = #dev} : tensor<2xf32>
  %rounded = arith.fptosi %sum : f32 to i64
  return %sum, %1, %rounded : f32, tensor<2xf32>, i64
}
