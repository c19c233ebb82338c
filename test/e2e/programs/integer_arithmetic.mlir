// Division and remainder (signed, unsigned, rounding up and down), shifts and bit operations.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xi32>, %d: tensor<?xi32>, %s: tensor<?xi32>)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
        tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %0 = arith.divsi %x, %d {device.scope = #dev} : tensor<?xi32>
  %1 = arith.divui %x, %d {device.scope = #dev} : tensor<?xi32>
  %2 = arith.remsi %x, %d {device.scope = #dev} : tensor<?xi32>
  %3 = arith.remui %x, %d : tensor<?xi32>
  %4 = arith.floordivsi %x, %d {device.scope = #dev} : tensor<?xi32>
  %5 = arith.ceildivsi %x, %d : tensor<?xi32>
  %6 = arith.shli %x, %s {device.scope = #dev} : tensor<?xi32>
  %7 = arith.shrsi %x, %s {device.scope = #dev} : tensor<?xi32>
  %8 = arith.shrui %x, %s : tensor<?xi32>
  %9 = arith.xori %x, %d {device.scope = #dev} : tensor<?xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9
    : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
      tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}
