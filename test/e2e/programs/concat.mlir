// tensor.concat of two and three operands along either dimension, with operands from both devices.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>, %z: tensor<2x3xf32>)
    -> (tensor<?x3xf32>, tensor<2x9xf32>) {
  %a = math.exp %x {device.scope = #dev} : tensor<?x3xf32>
  %b = math.absf %y : tensor<?x3xf32>
  %0 = tensor.concat dim(0) %a, %b {device.scope = #dev} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %w = arith.negf %z {device.scope = #dev} : tensor<2x3xf32>
  %1 = tensor.concat dim(1) %z, %w, %z : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
  return %0, %1 : tensor<?x3xf32>, tensor<2x9xf32>
}
