// scf.forall that assembles its result from slices, and one that runs over the elements of a matrix.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %y = math.sin %x {device.scope = #dev} : tensor<?x6xf32>
  %empty = tensor.empty(%n) : tensor<?x6xf32>
  %0 = scf.forall (%i) in (%n) shared_outs(%all = %empty) -> (tensor<?x6xf32>) {
    %row = tensor.extract_slice %y[%i, 0] [1, 6] [1, 1] : tensor<?x6xf32> to tensor<1x6xf32>
    %1 = arith.addf %row, %row : tensor<1x6xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %all[%i, 0] [1, 6] [1, 1] : tensor<1x6xf32> into tensor<?x6xf32>
    }
  } {device.scope = #dev}
  return %0 : tensor<?x6xf32>
}
