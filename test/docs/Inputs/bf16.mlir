#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
