// Matrix times vector, vector times matrix, dot product; each adds to what its output holds already.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x7xf32>, %x: tensor<7xf32>, %y: tensor<?xf32>, %start: tensor<7xf32>)
    -> (tensor<?xf32>, tensor<7xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x7xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.matvec {device.scope = #dev} ins(%a, %x : tensor<?x7xf32>, tensor<7xf32>)
                                           outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.vecmat {device.scope = #dev} ins(%y, %a : tensor<?xf32>, tensor<?x7xf32>)
                                           outs(%start : tensor<7xf32>) -> tensor<7xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %2 = linalg.dot ins(%0, %y : tensor<?xf32>, tensor<?xf32>) outs(%one : tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<?xf32>, tensor<7xf32>, tensor<f32>
}
