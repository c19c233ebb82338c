// Every way to place work: on_device with body or result fixed, a region, and attributes on arguments.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = arith.addf %x, %y : tensor<?x4xf32>
  %1 = "device.on_device"(%0) {scope = #dev, constrain_body = true, constrain_result = false}
    : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = math.absf %1 : tensor<?x4xf32>
  %3 = math.sqrt %2 : tensor<?x4xf32>
  %4 = "device.on_device"(%3) {scope = #host, constrain_body = true, constrain_result = true}
    : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %5 = "device.region"() ({
    %6 = arith.mulf %4, %y : tensor<?x4xf32>
    %7 = math.exp %6 : tensor<?x4xf32>
    "device.yield"(%7) : (tensor<?x4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<?x4xf32>
  %8 = "device.on_device"(%5) {scope = #dev} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %9 = arith.subf %8, %x : tensor<?x4xf32>
  return %9, %4 : tensor<?x4xf32>, tensor<?x4xf32>
}
