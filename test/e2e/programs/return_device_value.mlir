// One device value returned twice, read on the host and used on the device again.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %1 = arith.addf %0, %x {device.scope = #host} : tensor<?xf32>
  %2 = arith.mulf %0, %0 {device.scope = #dev} : tensor<?xf32>
  return %0, %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
