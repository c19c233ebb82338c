// A dense layer for batches of any size, and an average of four numbers.

func.func @layer(%x: tensor<?x3xf32>, %w: tensor<3x2xf32>, %scale: f32) -> tensor<?x2xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x3xf32>, tensor<3x2xf32>) outs(%f : tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = linalg.map ins(%p : tensor<?x2xf32>) outs(%e : tensor<?x2xf32>) (%element: f32, %old: f32) {
    %scaled = arith.mulf %element, %scale : f32
    linalg.yield %scaled : f32
  }
  return %y : tensor<?x2xf32>
}

func.func @element(%x: tensor<4xf32>, %index: index) -> f32 {
  %c4 = arith.constant 4 : index
  %inside = arith.cmpi ult, %index, %c4 : index
  cf.assert %inside, "the index is too large"
  %element = tensor.extract %x[%index] : tensor<4xf32>
  return %element : f32
}
