// tensor.pad: static and dynamic widths, a constant that is an argument, and values that depend on the place.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3xf32>, %k: tensor<2x4xi32>, %low: index, %value: f32)
    -> (tensor<?x6xf32>, tensor<?x3xf32>, tensor<4x5xi32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[1, 2] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } {device.scope = #dev} : tensor<?x3xf32> to tensor<?x6xf32>
  %1 = tensor.pad %x low[%low, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %value : f32
  } : tensor<?x3xf32> to tensor<?x3xf32>
  %2 = tensor.pad %k low[0, 1] high[2, 0] {
  ^bb0(%i: index, %j: index):
    %c10 = arith.constant 10 : index
    %3 = arith.muli %i, %c10 : index
    %4 = arith.addi %3, %j : index
    %5 = arith.index_cast %4 : index to i32
    tensor.yield %5 : i32
  } {device.scope = #dev} : tensor<2x4xi32> to tensor<4x5xi32>
  return %0, %1, %2 : tensor<?x6xf32>, tensor<?x3xf32>, tensor<4x5xi32>
}
