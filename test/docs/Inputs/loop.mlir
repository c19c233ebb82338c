#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %x) -> (tensor<4xf32>) {
    %0 = math.exp %p {device.scope = #dev} : tensor<4xf32>
    %1 = math.log %0 : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
