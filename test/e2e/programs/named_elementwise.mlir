// Named elementwise ops of linalg, one after the other, some on the device.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x5xf32>, %y: tensor<?x5xf32>) -> (tensor<?x5xf32>, tensor<?x5xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x5xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %0 = linalg.add ins(%x, %y : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %1 = linalg.mul {device.scope = #dev} ins(%0, %x : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %2 = linalg.sub {device.scope = #dev} ins(%1, %y : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %3 = linalg.abs ins(%2 : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %4 = linalg.sqrt ins(%3 : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %5 = linalg.max ins(%4, %x : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %6 = linalg.map { arith.minimumf } ins(%5, %0 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>)
  %7 = linalg.elementwise kind=#linalg.elementwise_kind<tanh> ins(%6 : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %8 = linalg.map ins(%7, %y : tensor<?x5xf32>, tensor<?x5xf32>) outs(%e : tensor<?x5xf32>)
    (%a: f32, %b: f32, %out: f32) {
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    }
  %9 = linalg.exp {device.scope = #dev} ins(%7 : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %10 = linalg.negf ins(%9 : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %8, %10 : tensor<?x5xf32>, tensor<?x5xf32>
}
