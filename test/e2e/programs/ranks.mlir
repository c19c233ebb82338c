// Rank 0, rank 5, unit extents, tensor.cast between static and dynamic shapes, results of permuted shapes.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%s: tensor<f32>, %x: tensor<2x1x?x3x2xf32>, %u: tensor<1x1xi32>, %k: tensor<4x5xf32>)
    -> (tensor<f32>, tensor<2x1x?x3x2xf32>, tensor<1x1xi32>, tensor<?x5xf32>, tensor<5x4xf32>, tensor<4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = math.exp %s {device.scope = #dev} : tensor<f32>
  %1 = arith.mulf %x, %x {device.scope = #dev} : tensor<2x1x?x3x2xf32>
  %2 = arith.addi %u, %u {device.scope = #dev} : tensor<1x1xi32>
  %3 = tensor.cast %k : tensor<4x5xf32> to tensor<?x5xf32>
  %4 = math.sin %3 {device.scope = #dev} : tensor<?x5xf32>
  %5 = tensor.cast %4 {device.scope = #dev} : tensor<?x5xf32> to tensor<4x5xf32>
  %e0 = tensor.empty() : tensor<5x4xf32>
  %e1 = arith.constant dense<0.0> : tensor<4xf32>
  %6:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%5 : tensor<4x5xf32>) outs(%e0, %e1 : tensor<5x4xf32>, tensor<4xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %o0: f32, %o1: f32):
    %7 = arith.addf %a, %o1 : f32
    linalg.yield %a, %7 : f32, f32
  } -> (tensor<5x4xf32>, tensor<4xf32>)
  return %0, %1, %2, %4, %6#0, %6#1
    : tensor<f32>, tensor<2x1x?x3x2xf32>, tensor<1x1xi32>, tensor<?x5xf32>, tensor<5x4xf32>, tensor<4xf32>
}
