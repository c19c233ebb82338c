// i8 and i16 arithmetic wraps and keeps signs on both devices.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: tensor<?xi8>, %b: tensor<?xi8>, %c: tensor<?xi16>)
    -> (tensor<?xi8>, tensor<?xi8>, tensor<?xi16>, tensor<?xi1>, tensor<i16>) {
  %0 = arith.addi %a, %b {device.scope = #dev} : tensor<?xi8>
  %1 = arith.muli %0, %b : tensor<?xi8>
  %2 = arith.extsi %1 {device.scope = #dev} : tensor<?xi8> to tensor<?xi16>
  %3 = arith.subi %2, %c {device.scope = #dev} : tensor<?xi16>
  %4 = arith.cmpi slt, %a, %b : tensor<?xi8>
  %zero = arith.constant dense<0> : tensor<i16>
  %sum = linalg.reduce {arith.addi} ins(%3 : tensor<?xi16>) outs(%zero : tensor<i16>) dimensions = [0]
    {device.scope = #dev}
  return %0, %1, %3, %4, %sum : tensor<?xi8>, tensor<?xi8>, tensor<?xi16>, tensor<?xi1>, tensor<i16>
}
