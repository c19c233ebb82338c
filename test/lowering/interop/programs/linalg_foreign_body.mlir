// Generic form can give a named operation another body than the one upstream derives (here: max for add).
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %z: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "linalg.matmul"(%x, %y, %z) <{indexing_maps = [#a, #b, #c], operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r : f32
    %m = arith.maximumf %o, %p : f32
    linalg.yield %m : f32
  }) : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
