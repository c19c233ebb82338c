// Tensors without elements: static and dynamic extents of 0 through elementwise work, a contraction over an
// empty dimension, a reduction of nothing, a concatenation.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3xf32>, %y: tensor<4x0xf32>, %z: tensor<0x5xf32>)
    -> (tensor<?x3xf32>, tensor<3xf32>, tensor<4x5xf32>, tensor<0x5xf32>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?x3xf32>
  %one = arith.constant dense<1.0> : tensor<3xf32>
  %1 = linalg.reduce {arith.addf} ins(%0 : tensor<?x3xf32>) outs(%one : tensor<3xf32>) dimensions = [0]
    {device.scope = #dev}
  %two = arith.constant dense<2.0> : tensor<4x5xf32>
  %2 = linalg.matmul {device.scope = #dev} ins(%y, %z : tensor<4x0xf32>, tensor<0x5xf32>)
                                           outs(%two : tensor<4x5xf32>) -> tensor<4x5xf32>
  %3 = arith.negf %z {device.scope = #dev} : tensor<0x5xf32>
  return %0, %1, %2, %3 : tensor<?x3xf32>, tensor<3xf32>, tensor<4x5xf32>, tensor<0x5xf32>
}
