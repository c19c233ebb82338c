// Functions of the math dialect on f64 tensors.
// %x lies in (0, 1), so that it is in the domain of every function; acosh gets %x + 1.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> (
      tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>,
      tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>,
      tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf64>
  %1 = math.expm1 %x {device.scope = #dev} : tensor<?xf64>
  %2 = math.log %x : tensor<?xf64>
  %3 = math.log1p %x {device.scope = #dev} : tensor<?xf64>
  %4 = math.sin %x {device.scope = #dev} : tensor<?xf64>
  %5 = math.cos %x : tensor<?xf64>
  %6 = math.tanh %y {device.scope = #dev} : tensor<?xf64>
  %7 = math.erf %y {device.scope = #dev} : tensor<?xf64>
  %8 = math.sqrt %x : tensor<?xf64>
  %9 = math.rsqrt %x {device.scope = #dev} : tensor<?xf64>
  %10 = math.cbrt %x {device.scope = #dev} : tensor<?xf64>
  %11 = math.floor %y : tensor<?xf64>
  %12 = math.asinh %x {device.scope = #dev} : tensor<?xf64>
  %one = arith.constant 1.0 : f64
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %ones = tensor.splat %one[%n] : tensor<?xf64>
  %shifted = arith.addf %x, %ones : tensor<?xf64>
  %13 = math.acosh %shifted {device.scope = #dev} : tensor<?xf64>
  %14 = math.atanh %x : tensor<?xf64>
  %15 = math.powf %x, %y {device.scope = #dev} : tensor<?xf64>
  %16 = math.atan2 %x, %y : tensor<?xf64>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16
    : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>,
      tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>,
      tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
}
