// Unary and binary functions of the math dialect on f32 tensors, split between the devices.
// %x lies in (0, 1), so that it is in the domain of every function; acosh gets %x + 1.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %1 = math.exp2 %x {device.scope = #dev} : tensor<?xf32>
  %2 = math.expm1 %x : tensor<?xf32>
  %3 = math.log %x {device.scope = #dev} : tensor<?xf32>
  %4 = math.log2 %x {device.scope = #dev} : tensor<?xf32>
  %5 = math.log10 %x : tensor<?xf32>
  %6 = math.log1p %x {device.scope = #dev} : tensor<?xf32>
  %7 = math.sin %x {device.scope = #dev} : tensor<?xf32>
  %8 = math.cos %x : tensor<?xf32>
  %9 = math.tan %x {device.scope = #dev} : tensor<?xf32>
  %10 = math.tanh %y {device.scope = #dev} : tensor<?xf32>
  %11 = math.sinh %y : tensor<?xf32>
  %12 = math.cosh %x {device.scope = #dev} : tensor<?xf32>
  %13 = math.asin %x {device.scope = #dev} : tensor<?xf32>
  %14 = math.acos %x : tensor<?xf32>
  %15 = math.atan %y {device.scope = #dev} : tensor<?xf32>
  %16 = math.erf %y {device.scope = #dev} : tensor<?xf32>
  %17 = math.sqrt %x : tensor<?xf32>
  %18 = math.rsqrt %x {device.scope = #dev} : tensor<?xf32>
  %19 = math.cbrt %x {device.scope = #dev} : tensor<?xf32>
  %20 = math.floor %y : tensor<?xf32>
  %21 = math.ceil %y {device.scope = #dev} : tensor<?xf32>
  %22 = math.round %y {device.scope = #dev} : tensor<?xf32>
  %23 = math.roundeven %y : tensor<?xf32>
  %24 = math.trunc %y {device.scope = #dev} : tensor<?xf32>
  %25 = math.absf %y {device.scope = #dev} : tensor<?xf32>
  %26 = math.powf %x, %y {device.scope = #dev} : tensor<?xf32>
  %27 = math.atan2 %x, %y : tensor<?xf32>
  %28 = math.copysign %x, %y {device.scope = #dev} : tensor<?xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28
    : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>
}
