// f16 operands with f16 and with f32 accumulation.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x8xf16>, %b: tensor<8x4xf16>) -> (tensor<?x4xf16>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %zero16 = arith.constant 0.0 : f16
  %zero32 = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x8xf16>
  %empty16 = tensor.empty(%n) : tensor<?x4xf16>
  %init16 = linalg.fill ins(%zero16 : f16) outs(%empty16 : tensor<?x4xf16>) -> tensor<?x4xf16>
  %empty32 = tensor.empty(%n) : tensor<?x4xf32>
  %init32 = linalg.fill ins(%zero32 : f32) outs(%empty32 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<?x8xf16>, tensor<8x4xf16>)
                     outs(%init16 : tensor<?x4xf16>) -> tensor<?x4xf16>
  %1 = linalg.matmul {device.scope = #dev} ins(%a, %b : tensor<?x8xf16>, tensor<8x4xf16>)
                                           outs(%init32 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf16>, tensor<?x4xf32>
}
