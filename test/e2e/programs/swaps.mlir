// Loops that exchange, duplicate and drop what they carry, with values from outside among it.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %steps: index)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = math.sin %x {device.scope = #dev} : tensor<?xf32>
  %1:3 = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %0, %b = %y, %c = %0)
      -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
    %2 = arith.addf %a, %b {device.scope = #dev} : tensor<?xf32>
    scf.yield %b, %2, %a : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  }
  %3:2 = scf.while (%a = %1#0, %b = %0, %i = %c0) : (tensor<?xf32>, tensor<?xf32>, index) -> (tensor<?xf32>, tensor<?xf32>) {
    %more = arith.cmpi ult, %i, %steps : index
    %next = arith.addi %i, %c1 : index
    %4 = arith.subf %a, %b {device.scope = #dev} : tensor<?xf32>
    scf.condition(%more) %4, %a : tensor<?xf32>, tensor<?xf32>
  } do {
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    scf.yield %b, %a, %steps : tensor<?xf32>, tensor<?xf32>, index
  }
  return %1#1, %1#2, %3#0, %3#1 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
