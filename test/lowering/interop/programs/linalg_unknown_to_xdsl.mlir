func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %c: tensor<2x3x5xf32>, %m: tensor<3x4xf32>, %v: tensor<4xf32>, %o: tensor<3xf32>) -> tensor<3xf32> {
  %bmm = linalg.batch_matmul ins(%a, %b : tensor<2x3x4xf32>, tensor<2x4x5xf32>) outs(%c : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %mv = linalg.matvec ins(%m, %v : tensor<3x4xf32>, tensor<4xf32>) outs(%o : tensor<3xf32>) -> tensor<3xf32>
  %et = tensor.empty() : tensor<4x3xf32>
  %t = linalg.transpose ins(%m : tensor<3x4xf32>) outs(%et : tensor<4x3xf32>) permutation = [1, 0]
  %eb = tensor.empty() : tensor<3x4xf32>
  %bc = linalg.broadcast ins(%v : tensor<4xf32>) outs(%eb : tensor<3x4xf32>) dimensions = [0]
  %rd = linalg.reduce { arith.maximumf } ins(%m : tensor<3x4xf32>) outs(%o : tensor<3xf32>) dimensions = [1]
  %mp = linalg.map { math.tanh } ins(%m : tensor<3x4xf32>) outs(%eb : tensor<3x4xf32>)
  %sm = linalg.softmax dimension(1) ins(%m : tensor<3x4xf32>) outs(%eb : tensor<3x4xf32>) -> tensor<3x4xf32>
  %ew = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%m : tensor<3x4xf32>) outs(%eb : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %rd : tensor<3xf32>
}
