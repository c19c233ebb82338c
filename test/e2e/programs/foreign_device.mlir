// Annotated for a CUDA device; run on whatever device it is mapped to.
#gpu = #device.scope<"cuda", 0 : i64, "", "">
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = linalg.matmul {device.scope = #gpu} ins(%x, %w : tensor<?x4xf32>, tensor<4x4xf32>)
                                           outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = math.absf %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
