// Two public functions that share a private one. What @embed does runs on opencl:0 for both of them; @compare
// keeps its two embeddings there and only brings the scores back.
#device = #device.scope<"opencl", 0 : i64, "", "">

// x: [n, 32], w: [32, 16] -> tanh(x w): [n, 16]
func.func private @embed(%x: tensor<?x32xf32>, %w: tensor<32x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %empty = tensor.empty(%n) : tensor<?x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x16xf32>) -> tensor<?x16xf32>
  %product = linalg.matmul {device.scope = #device}
      ins(%x, %w : tensor<?x32xf32>, tensor<32x16xf32>) outs(%zeros : tensor<?x16xf32>) -> tensor<?x16xf32>
  %result = math.tanh %product {device.scope = #device} : tensor<?x16xf32>
  return %result : tensor<?x16xf32>
}

// x: [n, 32] -> [n, 16]
func.func @encode(%x: tensor<?x32xf32>, %w: tensor<32x16xf32>) -> tensor<?x16xf32> {
  %result = call @embed(%x, %w) : (tensor<?x32xf32>, tensor<32x16xf32>) -> tensor<?x16xf32>
  return %result : tensor<?x16xf32>
}

// x: [n, 32], y: [m, 32] -> scores: [n, m], the inner products of their embeddings
func.func @compare(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %w: tensor<32x16xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %a = call @embed(%x, %w) : (tensor<?x32xf32>, tensor<32x16xf32>) -> tensor<?x16xf32>
  %b = call @embed(%y, %w) : (tensor<?x32xf32>, tensor<32x16xf32>) -> tensor<?x16xf32>
  %n = tensor.dim %a, %c0 : tensor<?x16xf32>
  %m = tensor.dim %b, %c0 : tensor<?x16xf32>
  %space = tensor.empty(%m) : tensor<16x?xf32>
  %turned = linalg.transpose ins(%b : tensor<?x16xf32>) outs(%space : tensor<16x?xf32>) permutation = [1, 0]
      {device.scope = #device}
  %empty = tensor.empty(%n, %m) : tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %scores = linalg.matmul {device.scope = #device}
      ins(%a, %turned : tensor<?x16xf32>, tensor<16x?xf32>) outs(%zeros : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %scores : tensor<?x?xf32>
}
