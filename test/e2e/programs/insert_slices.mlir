// insert_slice into an argument, into the result of device work and at a run-time place; the old values are
// used again afterwards, so that none may be overwritten.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<6x8xf32>, %patch: tensor<2x3xf32>, %row: tensor<8xf32>, %at: index)
    -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) {
  %0 = tensor.insert_slice %patch into %x[1, 4] [2, 3] [1, 1] {device.scope = #dev} : tensor<2x3xf32> into tensor<6x8xf32>
  %1 = tensor.insert_slice %row into %0[%at, 0] [1, 8] [1, 1] {device.scope = #dev} : tensor<8xf32> into tensor<6x8xf32>
  %2 = tensor.insert_slice %patch into %1[0, 1] [2, 3] [4, 2] : tensor<2x3xf32> into tensor<6x8xf32>
  %3 = arith.subf %1, %x {device.scope = #dev} : tensor<6x8xf32>
  return %0, %1, %2, %3 : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}
