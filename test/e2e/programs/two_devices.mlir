// Two virtual devices and the host in one program, with copies between all pairs.
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?x5xf32>, %w: tensor<5x5xf32>) -> (tensor<?x5xf32>, tensor<?x5xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x5xf32>
  %empty = tensor.empty(%n) : tensor<?x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x5xf32>) -> tensor<?x5xf32>
  %0 = linalg.matmul {device.scope = #first} ins(%x, %w : tensor<?x5xf32>, tensor<5x5xf32>)
                                             outs(%init : tensor<?x5xf32>) -> tensor<?x5xf32>
  %1 = math.tanh %0 {device.scope = #second} : tensor<?x5xf32>
  %2 = linalg.matmul {device.scope = #second} ins(%1, %w : tensor<?x5xf32>, tensor<5x5xf32>)
                                              outs(%init : tensor<?x5xf32>) -> tensor<?x5xf32>
  %3 = arith.addf %2, %0 {device.scope = #first} : tensor<?x5xf32>
  %4 = math.sin %1 {device.scope = #host} : tensor<?x5xf32>
  %5 = arith.mulf %4, %3 {device.scope = #second} : tensor<?x5xf32>
  return %3, %5 : tensor<?x5xf32>, tensor<?x5xf32>
}
