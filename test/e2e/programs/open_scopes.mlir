// Scopes with open fields, a memory scope, and a target with options; tensor arguments placed by attribute.
#any = #device.scope<"opencl", -1 : i64, "", "">
#zero = #device.scope<"opencl", 0 : i64, "", "">
#tuned = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
func.func @main(%x: tensor<?x3xf32> {device.scope = #zero}, %y: tensor<?x3xf32>)
    -> (tensor<?x3xf32> {device.scope = #zero}, tensor<?x3xf32>) {
  %0 = arith.addf %x, %y {device.scope = #any} : tensor<?x3xf32>
  %1 = math.tanh %0 {device.scope = #tuned} : tensor<?x3xf32>
  %2 = arith.negf %1 : tensor<?x3xf32>
  return %1, %2 : tensor<?x3xf32>, tensor<?x3xf32>
}
