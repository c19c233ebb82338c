// Private functions that give back an argument, or one of two: nothing may be freed twice or too early.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @same(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func private @choose(%flag: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = scf.if %flag -> (tensor<?xf32>) {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %0, %x : tensor<?xf32>, tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %flag: i1) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %1 = call @same(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = arith.addf %1, %0 {device.scope = #dev} : tensor<?xf32>
  %3:2 = call @choose(%flag, %2, %1) : (i1, tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %4 = math.sqrt %3#0 {device.scope = #dev} : tensor<?xf32>
  %5 = call @same(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %4, %5, %3#1 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
