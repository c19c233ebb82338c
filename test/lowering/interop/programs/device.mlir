#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @f(%x: tensor<4x4xf32> {device.scope = #host}, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = arith.addf %x, %y {device.scope = #dev} : tensor<4x4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "device.region"() ({
    %3 = math.exp %1 : tensor<4x4xf32>
    "device.yield"(%3) : (tensor<4x4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
