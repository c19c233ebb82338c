// A host loop that carries device tensors: repeated smoothing; the trip count is an argument and may be 0.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x4xf32>, %steps: index) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %half = arith.constant 0.5 : f32
  %halves = tensor.splat %half[%n] : tensor<?x4xf32>
  %0:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%current = %x, %sum = %halves)
      -> (tensor<?x4xf32>, tensor<?x4xf32>) {
    %1 = math.tanh %current {device.scope = #dev} : tensor<?x4xf32>
    %2 = arith.mulf %1, %halves {device.scope = #dev} : tensor<?x4xf32>
    %3 = arith.addf %sum, %2 {device.scope = #dev} : tensor<?x4xf32>
    scf.yield %2, %3 : tensor<?x4xf32>, tensor<?x4xf32>
  }
  return %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xf32>
}
