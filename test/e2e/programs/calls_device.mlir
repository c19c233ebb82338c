// Private functions whose arguments and results are declared on the device, with scalars and two results;
// one is called twice in a row and inside a loop.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @step(%x: tensor<?xf32> {device.scope = #dev}, %factor: f32)
    -> (tensor<?xf32> {device.scope = #dev}, tensor<f32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %factors = tensor.splat %factor[%n] : tensor<?xf32>
  %0 = arith.mulf %x, %factors : tensor<?xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.reduce {arith.addf} ins(%0 : tensor<?xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  return %0, %sum : tensor<?xf32>, tensor<f32>
}
func.func @main(%x: tensor<?xf32>, %factor: f32) -> (tensor<?xf32>, tensor<f32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0:2 = call @step(%x, %factor) : (tensor<?xf32>, f32) -> (tensor<?xf32>, tensor<f32>)
  %half = arith.constant 0.5 : f32
  %1:2 = call @step(%0#0, %half) : (tensor<?xf32>, f32) -> (tensor<?xf32>, tensor<f32>)
  %2:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %1#0, %total = %half) -> (tensor<?xf32>, f32) {
    %3:2 = func.call @step(%t, %factor) : (tensor<?xf32>, f32) -> (tensor<?xf32>, tensor<f32>)
    %sum = tensor.extract %3#1[] : tensor<f32>
    %next = arith.addf %total, %sum : f32
    scf.yield %3#0, %next : tensor<?xf32>, f32
  }
  return %2#0, %0#1, %2#1 : tensor<?xf32>, tensor<f32>, f32
}
