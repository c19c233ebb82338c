// Comparisons and selection: ordered and unordered, signed and unsigned, i1 arguments and results.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %i: tensor<?xi32>, %j: tensor<?xi32>, %mask: tensor<?xi1>)
    -> (tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xf32>, tensor<?xi32>) {
  %0 = arith.cmpf olt, %x, %y {device.scope = #dev} : tensor<?xf32>
  %1 = arith.cmpf une, %x, %y : tensor<?xf32>
  %2 = arith.cmpi slt, %i, %j {device.scope = #dev} : tensor<?xi32>
  %3 = arith.cmpi ult, %i, %j {device.scope = #dev} : tensor<?xi32>
  %both = arith.andi %0, %mask {device.scope = #dev} : tensor<?xi1>
  %4 = arith.select %both, %x, %y {device.scope = #dev} : tensor<?xi1>, tensor<?xf32>
  %either = arith.ori %2, %mask : tensor<?xi1>
  %5 = arith.select %either, %i, %j : tensor<?xi1>, tensor<?xi32>
  return %0, %1, %2, %3, %4, %5 : tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xf32>, tensor<?xi32>
}
