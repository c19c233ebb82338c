// Generic form can give a named operation another body than the one upstream derives (here: mul for add).
func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "linalg.add"(%x, %y, %z) <{operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r {test.mark} : f32
    linalg.yield %p : f32
  }) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
