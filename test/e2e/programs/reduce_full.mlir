// Reductions to a single element: sum, maximum, minimum and product, and the scalar read from one of them.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>, %k: tensor<?xi32>) -> (tensor<f32>, f32, tensor<f32>, tensor<i32>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %lowest = arith.constant dense<0xFF800000> : tensor<f32>
  %highest = arith.constant dense<0x7F800000> : tensor<f32>
  %one = arith.constant dense<1> : tensor<i32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
    {device.scope = #dev}
  %max = linalg.reduce {arith.maximumf} ins(%x : tensor<?x?xf32>) outs(%lowest : tensor<f32>) dimensions = [0, 1]
    {device.scope = #dev}
  %scalar = tensor.extract %max[] : tensor<f32>
  %min = linalg.reduce {arith.minimumf} ins(%x : tensor<?x?xf32>) outs(%highest : tensor<f32>) dimensions = [0, 1]
  %product = linalg.reduce {arith.muli} ins(%k : tensor<?xi32>) outs(%one : tensor<i32>) dimensions = [0]
    {device.scope = #dev}
  return %sum, %scalar, %min, %product : tensor<f32>, f32, tensor<f32>, tensor<i32>
}
