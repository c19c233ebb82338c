// Nested loops with data-dependent branches on single elements, on the default device.
func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %last = arith.subi %n, %c1 : index
  %0 = scf.for %i = %c0 to %last step %c1 iter_args(%outer = %x) -> (tensor<?xi32>) {
    %end = arith.subi %last, %i : index
    %1 = scf.for %j = %c0 to %end step %c1 iter_args(%t = %outer) -> (tensor<?xi32>) {
      %next = arith.addi %j, %c1 : index
      %a = tensor.extract %t[%j] : tensor<?xi32>
      %b = tensor.extract %t[%next] : tensor<?xi32>
      %wrong = arith.cmpi sgt, %a, %b : i32
      %2 = scf.if %wrong -> (tensor<?xi32>) {
        %3 = tensor.insert %b into %t[%j] : tensor<?xi32>
        %4 = tensor.insert %a into %3[%next] : tensor<?xi32>
        scf.yield %4 : tensor<?xi32>
      } else {
        scf.yield %t : tensor<?xi32>
      }
      scf.yield %2 : tensor<?xi32>
    }
    scf.yield %1 : tensor<?xi32>
  }
  return %0 : tensor<?xi32>
}
