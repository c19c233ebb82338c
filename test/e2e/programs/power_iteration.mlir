// Power iteration: a matrix-vector product, a norm read by the host, a division by it, in a loop.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?x?xf64>) -> (tensor<?xf64>, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %n = tensor.dim %a, %c0 : tensor<?x?xf64>
  %start = tensor.splat %one[%n] : tensor<?xf64>
  %none = arith.constant dense<0.0> : tensor<f64>
  %0:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%v = %start, %last = %zero) -> (tensor<?xf64>, f64) {
    %empty = tensor.empty(%n) : tensor<?xf64>
    %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<?xf64>) -> tensor<?xf64>
    %1 = linalg.matvec {device.scope = #dev} ins(%a, %v : tensor<?x?xf64>, tensor<?xf64>)
                                             outs(%init : tensor<?xf64>) -> tensor<?xf64>
    %2 = linalg.dot {device.scope = #dev} ins(%1, %1 : tensor<?xf64>, tensor<?xf64>) outs(%none : tensor<f64>) -> tensor<f64>
    %square = tensor.extract %2[] : tensor<f64>
    %norm = math.sqrt %square : f64
    %norms = tensor.splat %norm[%n] : tensor<?xf64>
    %3 = arith.divf %1, %norms {device.scope = #dev} : tensor<?xf64>
    scf.yield %3, %norm : tensor<?xf64>, f64
  }
  return %0#0, %0#1 : tensor<?xf64>, f64
}
