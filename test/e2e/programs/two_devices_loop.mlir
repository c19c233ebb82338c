// A loop in which two tensors live on two devices and change places.
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %steps: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %x, %b = %y) -> (tensor<?xf32>, tensor<?xf32>) {
    %1 = math.sin %a {device.scope = #first} : tensor<?xf32>
    %2 = math.cos %b {device.scope = #second} : tensor<?xf32>
    scf.yield %2, %1 : tensor<?xf32>, tensor<?xf32>
  }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}
