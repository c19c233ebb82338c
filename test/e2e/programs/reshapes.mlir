// collapse_shape, expand_shape and tensor.reshape of arguments and of computed tensors.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x4x3xf32>, %y: tensor<12xi32>, %shape: tensor<2xindex>)
    -> (tensor<?x12xf32>, tensor<?xf32>, tensor<?x2x6xf32>, tensor<3x4xi32>, tensor<?x?xi32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x3xf32>
  %0 = tensor.collapse_shape %x [[0], [1, 2]] {device.scope = #dev} : tensor<?x4x3xf32> into tensor<?x12xf32>
  %1 = math.sin %0 {device.scope = #dev} : tensor<?x12xf32>
  %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<?x12xf32> into tensor<?xf32>
  %3 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [%n, 2, 6] {device.scope = #dev}
    : tensor<?x12xf32> into tensor<?x2x6xf32>
  %4 = arith.addf %3, %3 : tensor<?x2x6xf32>
  %5 = tensor.expand_shape %y [[0, 1]] output_shape [3, 4] : tensor<12xi32> into tensor<3x4xi32>
  %6 = arith.muli %5, %5 {device.scope = #dev} : tensor<3x4xi32>
  %7 = tensor.reshape %y(%shape) : (tensor<12xi32>, tensor<2xindex>) -> tensor<?x?xi32>
  %8 = arith.addi %7, %7 : tensor<?x?xi32>
  return %0, %2, %4, %6, %8 : tensor<?x12xf32>, tensor<?xf32>, tensor<?x2x6xf32>, tensor<3x4xi32>, tensor<?x?xi32>
}
