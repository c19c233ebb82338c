// Results that are arguments: the same one twice, two exchanged, a constant, a splat, a scalar.
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %s: i64)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<3xf32>, tensor<2x2xi32>, i64, f64) {
  %small = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %splat = arith.constant dense<42> : tensor<2x2xi32>
  %number = arith.constant 2.5 : f64
  return %y, %x, %x, %small, %splat, %s, %number
    : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<3xf32>, tensor<2x2xi32>, i64, f64
}
