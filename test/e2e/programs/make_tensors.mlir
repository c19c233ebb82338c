// Tensors made from scalars: from_elements, insert, generate, splat; index and floating-point elements.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: f32, %b: f32, %n: index, %x: tensor<?x3xf32>)
    -> (tensor<2x2xf32>, tensor<4xf32>, tensor<?x3xf32>, tensor<?xf32>, tensor<3xindex>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %sum = arith.addf %a, %b : f32
  %product = arith.mulf %a, %b : f32
  %0 = tensor.from_elements %a, %b, %sum, %product {device.scope = #dev} : tensor<2x2xf32>
  %1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %2 = tensor.insert %a into %1[%c2] {device.scope = #dev} : tensor<4xf32>
  %3 = tensor.insert %b into %2[%c0] {device.scope = #dev} : tensor<4xf32>
  %rows = tensor.dim %x, %c0 : tensor<?x3xf32>
  %4 = tensor.generate %rows {
  ^bb0(%i: index, %j: index):
    %mirror = arith.subi %c2, %j : index
    %value = tensor.extract %x[%i, %mirror] : tensor<?x3xf32>
    %5 = arith.addf %value, %a : f32
    tensor.yield %5 : f32
  } {device.scope = #dev} : tensor<?x3xf32>
  %6 = tensor.splat %sum[%n] {device.scope = #dev} : tensor<?xf32>
  %7 = math.exp %6 {device.scope = #dev} : tensor<?xf32>
  %8 = tensor.from_elements %n, %rows, %c1 : tensor<3xindex>
  %9 = tensor.from_elements %product : tensor<f32>
  return %0, %3, %4, %7, %8, %9
    : tensor<2x2xf32>, tensor<4xf32>, tensor<?x3xf32>, tensor<?xf32>, tensor<3xindex>, tensor<f32>
}
