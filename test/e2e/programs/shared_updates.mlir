// Two different updates of one tensor, on each device: neither may see the other's.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<5xf32>, %a: f32) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = math.sin %x {device.scope = #dev} : tensor<5xf32>
  %1 = tensor.insert %a into %0[%c1] {device.scope = #dev} : tensor<5xf32>
  %2 = tensor.insert %a into %0[%c3] {device.scope = #dev} : tensor<5xf32>
  %3 = tensor.insert %a into %0[%c1] {device.scope = #host} : tensor<5xf32>
  %4 = arith.addf %1, %2 {device.scope = #dev} : tensor<5xf32>
  return %0, %1, %3, %4 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
