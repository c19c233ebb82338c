// Every iteration works on both devices: copies cross inside the loop.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%current = %x) -> (tensor<?xf32>) {
    %1 = arith.mulf %current, %w {device.scope = #dev} : tensor<?xf32>
    %2 = math.sin %1 {device.scope = #host} : tensor<?xf32>
    %3 = arith.addf %2, %w {device.scope = #dev} : tensor<?xf32>
    scf.yield %3 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
