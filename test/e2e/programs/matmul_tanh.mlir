// Contraction on the device, activation on the default device; the number of rows is dynamic.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x16xf32>, %w: tensor<16x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>)
                                           outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = math.tanh %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
