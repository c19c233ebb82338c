// Functions of the math dialect on f16 tensors.
// %x lies in (0, 1), so that it is in the domain of every function; acosh gets %x + 1.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf16>, %y: tensor<?xf16>) -> (
      tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>,
      tensor<?xf16>, tensor<?xf16>, tensor<?xf16>) {
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf16>
  %1 = math.log %x {device.scope = #dev} : tensor<?xf16>
  %2 = math.sin %x : tensor<?xf16>
  %3 = math.tanh %y {device.scope = #dev} : tensor<?xf16>
  %4 = math.erf %y {device.scope = #dev} : tensor<?xf16>
  %5 = math.sqrt %x : tensor<?xf16>
  %6 = math.rsqrt %x {device.scope = #dev} : tensor<?xf16>
  %7 = math.floor %y {device.scope = #dev} : tensor<?xf16>
  %8 = math.absf %y : tensor<?xf16>
  %9 = math.powf %x, %y {device.scope = #dev} : tensor<?xf16>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9
    : tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>, tensor<?xf16>,
      tensor<?xf16>, tensor<?xf16>, tensor<?xf16>
}
