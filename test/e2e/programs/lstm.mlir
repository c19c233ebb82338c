// An LSTM cell in a loop over time: the state is carried on the device, every step reads a slice of the input
// and writes one of the output.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @sigmoid(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = arith.constant dense<1.0> : tensor<2x3xf32>
  %0 = arith.negf %x : tensor<2x3xf32>
  %1 = math.exp %0 : tensor<2x3xf32>
  %2 = arith.addf %1, %one : tensor<2x3xf32>
  %3 = arith.divf %one, %2 : tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
func.func @main(%x: tensor<?x2x4xf32>, %w: tensor<4x12xf32>, %u: tensor<3x12xf32>)
    -> (tensor<?x2x3xf32>, tensor<2x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = tensor.dim %x, %c0 : tensor<?x2x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x3xf32>
  %gates0 = arith.constant dense<0.0> : tensor<2x12xf32>
  %outputs = tensor.empty(%steps) : tensor<?x2x3xf32>
  %0:3 = scf.for %t = %c0 to %steps step %c1 iter_args(%h = %zeros, %c = %zeros, %all = %outputs)
      -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<?x2x3xf32>) {
    %input = tensor.extract_slice %x[%t, 0, 0] [1, 2, 4] [1, 1, 1] {device.scope = #dev} : tensor<?x2x4xf32> to tensor<2x4xf32>
    %1 = linalg.matmul {device.scope = #dev} ins(%input, %w : tensor<2x4xf32>, tensor<4x12xf32>)
                                             outs(%gates0 : tensor<2x12xf32>) -> tensor<2x12xf32>
    %2 = linalg.matmul {device.scope = #dev} ins(%h, %u : tensor<2x3xf32>, tensor<3x12xf32>)
                                             outs(%1 : tensor<2x12xf32>) -> tensor<2x12xf32>
    %gi = tensor.extract_slice %2[0, 0] [2, 3] [1, 1] {device.scope = #dev} : tensor<2x12xf32> to tensor<2x3xf32>
    %gf = tensor.extract_slice %2[0, 3] [2, 3] [1, 1] {device.scope = #dev} : tensor<2x12xf32> to tensor<2x3xf32>
    %gg = tensor.extract_slice %2[0, 6] [2, 3] [1, 1] {device.scope = #dev} : tensor<2x12xf32> to tensor<2x3xf32>
    %go = tensor.extract_slice %2[0, 9] [2, 3] [1, 1] {device.scope = #dev} : tensor<2x12xf32> to tensor<2x3xf32>
    %i = func.call @sigmoid(%gi) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %f = func.call @sigmoid(%gf) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %g = math.tanh %gg {device.scope = #dev} : tensor<2x3xf32>
    %o = func.call @sigmoid(%go) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %kept = arith.mulf %f, %c {device.scope = #dev} : tensor<2x3xf32>
    %added = arith.mulf %i, %g {device.scope = #dev} : tensor<2x3xf32>
    %cell = arith.addf %kept, %added {device.scope = #dev} : tensor<2x3xf32>
    %squashed = math.tanh %cell {device.scope = #dev} : tensor<2x3xf32>
    %hidden = arith.mulf %o, %squashed {device.scope = #dev} : tensor<2x3xf32>
    %more = tensor.insert_slice %hidden into %all[%t, 0, 0] [1, 2, 3] [1, 1, 1] {device.scope = #dev} : tensor<2x3xf32> into tensor<?x2x3xf32>
    scf.yield %hidden, %cell, %more : tensor<2x3xf32>, tensor<2x3xf32>, tensor<?x2x3xf32>
  }
  return %0#2, %0#1 : tensor<?x2x3xf32>, tensor<2x3xf32>
}
