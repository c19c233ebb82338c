func.func @f(%t: tensor<?x6xf32>, %i: index, %v: f32) -> (tensor<?x6xf32>, tensor<?xf32>, tensor<2x3x6xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?x6xf32>
  %s = tensor.extract_slice %t[%i, 1] [%d, 2] [1, 3] : tensor<?x6xf32> to tensor<?x2xf32>
  %u = tensor.insert_slice %s into %t[%i, 0] [%d, 2] [1, 3] : tensor<?x2xf32> into tensor<?x6xf32>
  %c = tensor.collapse_shape %t [[0, 1]] : tensor<?x6xf32> into tensor<?xf32>
  %e = tensor.empty() : tensor<6x6xf32>
  %x = tensor.expand_shape %e [[0, 1], [2]] output_shape [2, 3, 6] : tensor<6x6xf32> into tensor<2x3x6xf32>
  %p = tensor.pad %t nofold low[0, %i] high[1, 0] {
  ^bb0(%a: index, %b: index):
    tensor.yield %v : f32
  } : tensor<?x6xf32> to tensor<?x?xf32>
  %g = tensor.generate %d {
  ^bb0(%a: index):
    tensor.yield %v : f32
  } : tensor<?xf32>
  return %u, %c, %x : tensor<?x6xf32>, tensor<?xf32>, tensor<2x3x6xf32>
}
