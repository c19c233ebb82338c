func.func @f() -> tensor<3x4xf32> {
  %0 = arith.constant sparse<[[0, 1], [2, 3]], [1.5, -2.0]> : tensor<3x4xf32>
  %1 = arith.constant sparse<0, 7> : tensor<100xi32>
  return %0 : tensor<3x4xf32>
}
