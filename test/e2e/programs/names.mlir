// Functions with the names that pieces and kernels would get, on one device and across devices.
#d0 = #device.scope<"opencl", 0 : i64, "", "">
#d1 = #device.scope<"opencl", 1 : i64, "", "">
func.func private @layer(%x: tensor<?x?x?xf32> {device.scope = #d1}, %y: tensor<?x?x?xf32> {device.scope = #d1}, %z: tensor<?x?x?xf32> {device.scope = #d1}) -> (tensor<?x?x?xf32> {device.scope = #d1}) {
  %0 = linalg.batch_matmul ins(%x, %y : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%z : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}
func.func private @layer_batch(%x: tensor<?x?xf32> {device.scope = #d0}, %y: tensor<?x?xf32> {device.scope = #d0}, %z: tensor<?x?xf32> {device.scope = #d0}) -> (tensor<?x?xf32> {device.scope = #d0}) {
  %1 = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
func.func private @main_opencl0_0_generic(%x: tensor<?xf32> {device.scope = #d0}) -> (tensor<?xf32> {device.scope = #d0}) {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @main_opencl0_0(%x: tensor<?xf32> {device.scope = #d0}) -> (tensor<?xf32> {device.scope = #d0}) {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%x: tensor<3x3x3xf32>, %v: tensor<3xf32>, %m: tensor<3x3xf32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<3xf32>) {
  %a = tensor.cast %x : tensor<3x3x3xf32> to tensor<?x?x?xf32>
  %b = tensor.cast %m : tensor<3x3xf32> to tensor<?x?xf32>
  %c = tensor.cast %v : tensor<3xf32> to tensor<?xf32>
  %0 = call @layer(%a, %a, %a) : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %1 = call @layer_batch(%b, %b, %b) : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = call @main_opencl0_0_generic(%c) : (tensor<?xf32>) -> tensor<?xf32>
  %3 = call @main_opencl0_0(%c) : (tensor<?xf32>) -> tensor<?xf32>
  %4 = math.tanh %v {device.scope = #d0} : tensor<3xf32>
  return %0, %1, %2, %3, %4 : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<3xf32>
}
