// Newton's iteration for square roots: goes on while an error that the device computed is too large.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf64>) -> (tensor<?xf64>, i64) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %half = arith.constant 0.5 : f64
  %tolerance = arith.constant 1.0e-13 : f64
  %most = arith.constant 60 : i64
  %count0 = arith.constant 0 : i64
  %count1 = arith.constant 1 : i64
  %halves = tensor.splat %half[%n] : tensor<?xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %0:2 = scf.while (%guess = %x, %count = %count0) : (tensor<?xf64>, i64) -> (tensor<?xf64>, i64) {
    %error = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]}
      ins(%guess, %x : tensor<?xf64>, tensor<?xf64>) outs(%zero : tensor<f64>) attrs = {device.scope = #dev} {
    ^bb0(%a: f64, %b: f64, %acc: f64):
      %1 = arith.mulf %a, %a : f64
      %2 = arith.subf %1, %b : f64
      %3 = math.absf %2 : f64
      %4 = arith.divf %3, %b : f64
      %5 = arith.maximumf %4, %acc : f64
      linalg.yield %5 : f64
    } -> tensor<f64>
    %worst = tensor.extract %error[] : tensor<f64>
    %inexact = arith.cmpf ogt, %worst, %tolerance : f64
    %left = arith.cmpi slt, %count, %most : i64
    %continue = arith.andi %inexact, %left : i1
    scf.condition(%continue) %guess, %count : tensor<?xf64>, i64
  } do {
  ^bb0(%guess: tensor<?xf64>, %count: i64):
    %1 = arith.divf %x, %guess {device.scope = #dev} : tensor<?xf64>
    %2 = arith.addf %guess, %1 {device.scope = #dev} : tensor<?xf64>
    %3 = arith.mulf %2, %halves {device.scope = #dev} : tensor<?xf64>
    %4 = arith.addi %count, %count1 : i64
    scf.yield %3, %4 : tensor<?xf64>, i64
  }
  %done = arith.cmpi slt, %0#1, %most : i64
  %converged = arith.extui %done : i1 to i64
  return %0#0, %converged : tensor<?xf64>, i64
}
