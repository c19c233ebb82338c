// Functions whose results share memory: the same value twice, or twice depending on a condition. All results
// are used, updated, dropped or returned: none may be freed twice, and no update may reach another.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @twice(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = math.tanh %x : tensor<?xf32>
  return %0, %0 : tensor<?xf32>, tensor<?xf32>
}
func.func private @perhaps(%flag: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = math.sin %x : tensor<?xf32>
  %1 = scf.if %flag -> (tensor<?xf32>) {
    scf.yield %0 : tensor<?xf32>
  } else {
    %2 = arith.negf %0 : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
func.func private @carried(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = math.cos %x : tensor<?xf32>
  %1:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %0, %b = %x) -> (tensor<?xf32>, tensor<?xf32>) {
    %2 = arith.addf %b, %x : tensor<?xf32>
    scf.yield %a, %2 : tensor<?xf32>, tensor<?xf32>
  }
  return %1#0, %0 : tensor<?xf32>, tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %flag: i1, %s: f32)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %0:2 = call @twice(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %1 = arith.addf %0#0, %0#1 {device.scope = #dev} : tensor<?xf32>
  %2:2 = call @twice(%1) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %3:2 = call @perhaps(%flag, %1) : (i1, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %4 = arith.mulf %3#0, %3#1 {device.scope = #dev} : tensor<?xf32>
  %5 = tensor.insert %s into %0#0[%c0] : tensor<?xf32>
  %6:2 = call @carried(%5) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %7 = tensor.insert %s into %6#0[%c0] : tensor<?xf32>
  %8 = tensor.insert %s into %3#1[%c0] : tensor<?xf32>
  %9 = arith.addf %0#1, %5 : tensor<?xf32>
  %10 = arith.subf %6#1, %7 : tensor<?xf32>
  %11 = arith.mulf %3#0, %8 : tensor<?xf32>
  return %2#0, %3#0, %3#1, %4, %9, %10, %11
    : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
