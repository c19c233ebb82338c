// A long chain whose links alternate between the devices, then stay on one.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %0 = math.cos %x {device.scope = #dev} : tensor<?xf64>
  %1 = math.sin %0 {device.scope = #host} : tensor<?xf64>
  %2 = math.sin %1 {device.scope = #dev} : tensor<?xf64>
  %3 = math.cos %2 {device.scope = #host} : tensor<?xf64>
  %4 = math.sin %3 {device.scope = #dev} : tensor<?xf64>
  %5 = math.sin %4 {device.scope = #host} : tensor<?xf64>
  %6 = math.cos %5 {device.scope = #dev} : tensor<?xf64>
  %7 = math.sin %6 {device.scope = #host} : tensor<?xf64>
  %8 = math.sin %7 {device.scope = #dev} : tensor<?xf64>
  %9 = math.cos %8 {device.scope = #host} : tensor<?xf64>
  %10 = math.sin %9 {device.scope = #dev} : tensor<?xf64>
  %11 = math.sin %10 {device.scope = #host} : tensor<?xf64>
  %12 = arith.mulf %11, %x {device.scope = #dev} : tensor<?xf64>
  %13 = arith.addf %12, %y {device.scope = #dev} : tensor<?xf64>
  %14 = arith.mulf %13, %y {device.scope = #dev} : tensor<?xf64>
  %15 = arith.addf %14, %x {device.scope = #dev} : tensor<?xf64>
  %16 = arith.mulf %15, %y {device.scope = #dev} : tensor<?xf64>
  %17 = arith.addf %16, %y {device.scope = #dev} : tensor<?xf64>
  %18 = arith.mulf %17, %x {device.scope = #dev} : tensor<?xf64>
  %19 = arith.addf %18, %y {device.scope = #dev} : tensor<?xf64>
  %20 = arith.mulf %19, %y {device.scope = #dev} : tensor<?xf64>
  %21 = arith.addf %20, %x {device.scope = #dev} : tensor<?xf64>
  %22 = arith.mulf %21, %y {device.scope = #dev} : tensor<?xf64>
  %23 = arith.addf %22, %y {device.scope = #dev} : tensor<?xf64>
  %24 = arith.mulf %23, %x {device.scope = #dev} : tensor<?xf64>
  %25 = arith.addf %24, %y {device.scope = #dev} : tensor<?xf64>
  %26 = arith.mulf %25, %y {device.scope = #dev} : tensor<?xf64>
  %27 = arith.addf %26, %x {device.scope = #dev} : tensor<?xf64>
  %28 = arith.mulf %27, %y {device.scope = #dev} : tensor<?xf64>
  %29 = arith.addf %28, %y {device.scope = #dev} : tensor<?xf64>
  %30 = arith.mulf %29, %x {device.scope = #dev} : tensor<?xf64>
  %31 = arith.addf %30, %y {device.scope = #dev} : tensor<?xf64>
  %32 = arith.mulf %31, %y {device.scope = #dev} : tensor<?xf64>
  %33 = arith.addf %32, %x {device.scope = #dev} : tensor<?xf64>
  %34 = arith.mulf %33, %y {device.scope = #dev} : tensor<?xf64>
  %35 = arith.addf %34, %y {device.scope = #dev} : tensor<?xf64>
  return %35 : tensor<?xf64>
}
