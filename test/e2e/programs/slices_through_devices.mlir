// Parts of host tensors computed on a device and put back: rows, blocks of rows, columns, and one read twice.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<6x5xf32>, %row: index, %count: index)
    -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, f32) {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract_slice %x[%row, 0] [1, 5] [1, 1] : tensor<6x5xf32> to tensor<5xf32>
  %1 = math.sin %0 {device.scope = #dev} : tensor<5xf32>
  %rows = tensor.insert_slice %1 into %x[%row, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<6x5xf32>

  %2 = tensor.extract_slice %x[%row, 0] [%count, 5] [1, 1] : tensor<6x5xf32> to tensor<?x5xf32>
  %3 = math.cos %2 {device.scope = #dev} : tensor<?x5xf32>
  %blocks = tensor.insert_slice %3 into %rows[0, 0] [%count, 5] [1, 1] : tensor<?x5xf32> into tensor<6x5xf32>

  %4 = tensor.extract_slice %x[0, %count] [6, 1] [1, 1] : tensor<6x5xf32> to tensor<6xf32>
  %5 = math.exp %4 {device.scope = #dev} : tensor<6xf32>
  %columns = tensor.insert_slice %5 into %x[0, %count] [6, 1] [1, 1] : tensor<6xf32> into tensor<6x5xf32>

  %6 = tensor.extract_slice %blocks[%count, 0] [1, 5] [1, 1] : tensor<6x5xf32> to tensor<5xf32>
  %7 = math.absf %6 {device.scope = #dev} : tensor<5xf32>
  %twice = tensor.insert_slice %7 into %columns[%row, 0] [1, 5] [1, 1] : tensor<5xf32> into tensor<6x5xf32>
  %8 = tensor.extract %7[%c0] : tensor<5xf32>
  return %rows, %blocks, %columns, %twice, %8
      : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, f32
}
