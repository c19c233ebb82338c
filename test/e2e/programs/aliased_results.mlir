// Functions whose results share memory: the same value twice, or twice depending on a condition. All results
// are used, dropped or returned, and none may be freed twice.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @twice(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = math.exp %x : tensor<?xf32>
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
func.func @main(%x: tensor<?xf32>, %flag: i1)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:2 = call @twice(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %1 = arith.addf %0#0, %0#1 {device.scope = #dev} : tensor<?xf32>
  %2:2 = call @twice(%1) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %3:2 = call @perhaps(%flag, %1) : (i1, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %4 = arith.mulf %3#0, %3#1 {device.scope = #dev} : tensor<?xf32>
  return %0#1, %2#0, %3#0, %3#1, %4
    : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
