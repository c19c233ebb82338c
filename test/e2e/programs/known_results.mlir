// What device functions are known to return decides what the host does: a branch on an element of a tensor that
// was filled, a loop as long as a tensor, and tensors of one value that cross in both directions.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @limits(%x: tensor<?xf32> {device.scope = #dev}, %unused: tensor<?xf32> {device.scope = #dev})
    -> (tensor<4xf32> {device.scope = #dev}, tensor<?xf32> {device.scope = #dev}, i32) {
  %two = arith.constant 2.0 : f32
  %count = arith.constant 3 : i32
  %e = tensor.empty() : tensor<4xf32>
  %twos = linalg.fill ins(%two : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = arith.addf %twos, %twos : tensor<4xf32>
  %y = arith.addf %x, %x : tensor<?xf32>
  return %sum, %y, %count : tensor<4xf32>, tensor<?xf32>, i32
}
func.func private @scaled(%x: tensor<?xf32> {device.scope = #dev}, %by: tensor<4xf32> {device.scope = #dev}, %which: index)
    -> (tensor<?xf32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %factor = tensor.extract %by[%which] : tensor<4xf32>
  %factors = tensor.splat %factor[%n] : tensor<?xf32>
  %0 = arith.mulf %x, %factors : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<4xf32>, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %three = arith.constant 3.0 : f32
  %halves = arith.constant dense<0.5> : tensor<4xf32>
  %0:3 = call @limits(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<4xf32>, tensor<?xf32>, i32)
  %limit = tensor.extract %0#0[%c1] : tensor<4xf32>
  %below = arith.cmpf olt, %limit, %three : f32
  %1 = scf.if %below -> tensor<?xf32> {
    %2 = math.exp %0#1 {device.scope = #dev} : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  } else {
    %2 = math.tanh %0#1 {device.scope = #dev} : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  %n = tensor.dim %0#0, %c0 : tensor<4xf32>
  %3 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %1) -> tensor<?xf32> {
    %4 = func.call @scaled(%t, %halves, %c2) : (tensor<?xf32>, tensor<4xf32>, index) -> tensor<?xf32>
    scf.yield %4 : tensor<?xf32>
  }
  return %3, %0#0, %0#2 : tensor<?xf32>, tensor<4xf32>, i32
}
