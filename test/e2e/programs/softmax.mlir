// linalg.softmax over the last and over the first dimension.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>, %y: tensor<6x3xf64>) -> (tensor<?x?xf32>, tensor<6x3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %0 = linalg.softmax {device.scope = #dev} dimension(1) ins(%x : tensor<?x?xf32>) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %empty64 = tensor.empty() : tensor<6x3xf64>
  %1 = linalg.softmax dimension(0) ins(%y : tensor<6x3xf64>) outs(%empty64 : tensor<6x3xf64>) -> tensor<6x3xf64>
  return %0, %1 : tensor<?x?xf32>, tensor<6x3xf64>
}
