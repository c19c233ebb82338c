// extract_slice: static, with strides, with offsets and sizes known at run time, and dropping dimensions.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x10xf32>, %offset: index, %size: index)
    -> (tensor<?x3xf32>, tensor<?x5xf32>, tensor<1x?xf32>, tensor<10xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x10xf32>
  %0 = tensor.extract_slice %x[0, 2] [%n, 3] [1, 1] {device.scope = #dev} : tensor<?x10xf32> to tensor<?x3xf32>
  %a = math.absf %0 {device.scope = #dev} : tensor<?x3xf32>
  %1 = tensor.extract_slice %x[0, 1] [%n, 5] [1, 2] : tensor<?x10xf32> to tensor<?x5xf32>
  %b = arith.addf %1, %1 {device.scope = #dev} : tensor<?x5xf32>
  %2 = tensor.extract_slice %x[0, %offset] [1, %size] [1, 1] {device.scope = #dev} : tensor<?x10xf32> to tensor<1x?xf32>
  %3 = tensor.extract_slice %x[0, 0] [1, 10] [1, 1] : tensor<?x10xf32> to tensor<10xf32>
  %d = math.exp %3 : tensor<10xf32>
  %4 = tensor.extract_slice %x[0, %offset] [%n, 1] [1, 1] {device.scope = #dev} : tensor<?x10xf32> to tensor<?xf32>
  return %a, %b, %2, %d, %4 : tensor<?x3xf32>, tensor<?x5xf32>, tensor<1x?xf32>, tensor<10xf32>, tensor<?xf32>
}
