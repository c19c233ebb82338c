// RUN: devscope lower %s --stage memory | filecheck %s

// Both sums read the tensor as it is, and widen its elements themselves.
// CHECK-LABEL: func.func @devscope_function_sums
// CHECK-NOT:     memref<40x30xf64>
// CHECK:         return
func.func @sums(%x: tensor<40x30xf32>) -> (tensor<40xf64>, tensor<30xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<40x30xf64>
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<40x30xf32>) outs(%e : tensor<40x30xf64>) {
  ^bb0(%in: f32, %out: f64):
    %v = arith.extf %in : f32 to f64
    linalg.yield %v : f64
  } -> tensor<40x30xf64>
  %e0 = tensor.empty() : tensor<40xf64>
  %e1 = tensor.empty() : tensor<30xf64>
  %f0 = linalg.fill ins(%zero : f64) outs(%e0 : tensor<40xf64>) -> tensor<40xf64>
  %f1 = linalg.fill ins(%zero : f64) outs(%e1 : tensor<30xf64>) -> tensor<30xf64>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%wide : tensor<40x30xf64>) outs(%f0 : tensor<40xf64>) {
  ^bb0(%in: f64, %sum: f64):
    %v = arith.addf %in, %sum : f64
    linalg.yield %v : f64
  } -> tensor<40xf64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]} ins(%wide : tensor<40x30xf64>) outs(%f1 : tensor<30xf64>) {
  ^bb0(%in: f64, %sum: f64):
    %v = arith.addf %in, %sum : f64
    linalg.yield %v : f64
  } -> tensor<30xf64>
  return %0, %1 : tensor<40xf64>, tensor<30xf64>
}

// What a loop reads is widened in front of it, once; elementwise operations on tensors, too.
// CHECK-LABEL: func.func @devscope_function_loop
// CHECK:         linalg.generic
// CHECK:           arith.extf
// CHECK:         scf.for
// CHECK-NOT:       arith.extf
// CHECK:         return
func.func @loop(%x: tensor<40xf32>, %n: index) -> (tensor<40xf64>, tensor<40xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %wide = arith.extf %x : tensor<40xf32> to tensor<40xf64>
  %exp = math.exp %wide : tensor<40xf64>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %exp) -> (tensor<40xf64>) {
    %next = arith.mulf %a, %wide : tensor<40xf64>
    scf.yield %next : tensor<40xf64>
  }
  return %r, %exp : tensor<40xf64>, tensor<40xf64>
}
