// Integer contractions: i32, i64, and i8 operands accumulated in i32; everything dynamic.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x?xi32>, %b: tensor<?x?xi32>, %c: tensor<?x4xi64>, %d: tensor<4x3xi64>,
                %e: tensor<5x9xi8>, %f: tensor<9x2xi8>) -> (tensor<?x?xi32>, tensor<?x3xi64>, tensor<5x2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero32 = arith.constant 0 : i32
  %zero64 = arith.constant 0 : i64
  %m = tensor.dim %a, %c0 : tensor<?x?xi32>
  %n = tensor.dim %b, %c1 : tensor<?x?xi32>
  %empty0 = tensor.empty(%m, %n) : tensor<?x?xi32>
  %init0 = linalg.fill ins(%zero32 : i32) outs(%empty0 : tensor<?x?xi32>) -> tensor<?x?xi32>
  %0 = linalg.matmul {device.scope = #dev} ins(%a, %b : tensor<?x?xi32>, tensor<?x?xi32>)
                                           outs(%init0 : tensor<?x?xi32>) -> tensor<?x?xi32>
  %rows = tensor.dim %c, %c0 : tensor<?x4xi64>
  %empty1 = tensor.empty(%rows) : tensor<?x3xi64>
  %init1 = linalg.fill ins(%zero64 : i64) outs(%empty1 : tensor<?x3xi64>) -> tensor<?x3xi64>
  %1 = linalg.matmul ins(%c, %d : tensor<?x4xi64>, tensor<4x3xi64>)
                     outs(%init1 : tensor<?x3xi64>) -> tensor<?x3xi64>
  %init2 = arith.constant dense<0> : tensor<5x2xi32>
  %2 = linalg.matmul {device.scope = #dev} ins(%e, %f : tensor<5x9xi8>, tensor<9x2xi8>)
                                           outs(%init2 : tensor<5x2xi32>) -> tensor<5x2xi32>
  return %0, %1, %2 : tensor<?x?xi32>, tensor<?x3xi64>, tensor<5x2xi32>
}
