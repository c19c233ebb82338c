// A branch on a scalar argument; its two sides work on different devices and give two results.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %flag: i1, %limit: i32) -> (tensor<?xf32>, i32) {
  %c7 = arith.constant 7 : i32
  %0:2 = scf.if %flag -> (tensor<?xf32>, i32) {
    %1 = math.exp %x {device.scope = #dev} : tensor<?xf32>
    %2 = arith.addf %1, %x {device.scope = #dev} : tensor<?xf32>
    scf.yield %2, %limit : tensor<?xf32>, i32
  } else {
    %1 = arith.negf %x : tensor<?xf32>
    scf.yield %1, %c7 : tensor<?xf32>, i32
  }
  %above = arith.cmpi sgt, %0#1, %c7 : i32
  %3 = scf.if %above -> (tensor<?xf32>) {
    %4 = arith.mulf %0#0, %x {device.scope = #dev} : tensor<?xf32>
    scf.yield %4 : tensor<?xf32>
  } else {
    scf.yield %0#0 : tensor<?xf32>
  }
  return %3, %0#1 : tensor<?xf32>, i32
}
