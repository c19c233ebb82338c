// collapse_shape, expand_shape and tensor.reshape of arguments and of computed tensors; shapes of device data that the
// host computes, ranks 0 and 1 among them.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x4x3xf32>, %y: tensor<12xi32>, %shape: tensor<2xindex>)
    -> (tensor<?x12xf32>, tensor<?xf32>, tensor<?x2x6xf32>, tensor<3x4xi32>, tensor<?x?xi32>,
        tensor<?x?xi32>, tensor<i32>, tensor<1xi32>) {
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
  %rows = tensor.extract %shape[%c0] : tensor<2xindex>
  %rows64 = arith.index_cast %rows : index to i64
  %c12 = arith.constant 12 : i64
  %columns64 = arith.divsi %c12, %rows64 : i64
  %swapped = tensor.from_elements %columns64, %rows64 : tensor<2xi64>
  %9 = tensor.reshape %6(%shape) {device.scope = #dev} : (tensor<3x4xi32>, tensor<2xindex>) -> tensor<?x?xi32>
  %10 = arith.addi %9, %9 {device.scope = #dev} : tensor<?x?xi32>
  %11 = tensor.reshape %10(%swapped) {device.scope = #dev} : (tensor<?x?xi32>, tensor<2xi64>) -> tensor<?x?xi32>
  %corner = tensor.extract_slice %11[0, 0] [1, 1] [1, 1] {device.scope = #dev} : tensor<?x?xi32> to tensor<1x1xi32>
  %none = tensor.empty() : tensor<0xi64>
  %12 = tensor.reshape %corner(%none) {device.scope = #dev} : (tensor<1x1xi32>, tensor<0xi64>) -> tensor<i32>
  %one = arith.constant dense<1> : tensor<1xi64>
  %13 = tensor.reshape %12(%one) {device.scope = #dev} : (tensor<i32>, tensor<1xi64>) -> tensor<1xi32>
  %14 = arith.muli %13, %13 {device.scope = #dev} : tensor<1xi32>
  return %0, %2, %4, %6, %8, %11, %12, %14 : tensor<?x12xf32>, tensor<?xf32>, tensor<?x2x6xf32>, tensor<3x4xi32>,
    tensor<?x?xi32>, tensor<?x?xi32>, tensor<i32>, tensor<1xi32>
}
