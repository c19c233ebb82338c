// Integer functions: absolute value, bit counts, powers, saturating minimum and maximum.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xi32>, %y: tensor<?xi64>)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi32>) {
  %0 = math.absi %x {device.scope = #dev} : tensor<?xi32>
  %1 = math.ctpop %x {device.scope = #dev} : tensor<?xi32>
  %2 = math.ctlz %y : tensor<?xi64>
  %3 = math.cttz %y {device.scope = #dev} : tensor<?xi64>
  %4 = arith.minsi %x, %1 : tensor<?xi32>
  %5 = arith.maxsi %4, %0 {device.scope = #dev} : tensor<?xi32>
  return %0, %1, %2, %3, %5 : tensor<?xi32>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi32>
}
