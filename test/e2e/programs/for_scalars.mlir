// A loop that carries scalars and a tensor; the scalars feed device work, the loop index too.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %rate: f32) -> (tensor<?xf32>, f32, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %count0 = arith.constant 0 : i64
  %decay = arith.constant 0.5 : f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  %0:3 = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %x, %r = %rate, %count = %count0)
      -> (tensor<?xf32>, f32, i64) {
    %integer = arith.index_cast %i : index to i64
    %number = arith.sitofp %integer : i64 to f32
    %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"]}
      ins(%t : tensor<?xf32>) outs(%empty : tensor<?xf32>) attrs = {device.scope = #dev} {
    ^bb0(%a: f32, %out: f32):
      %2 = arith.mulf %a, %r : f32
      %3 = arith.addf %2, %number : f32
      linalg.yield %3 : f32
    } -> tensor<?xf32>
    %slower = arith.mulf %r, %decay : f32
    %more = arith.addi %count, %integer : i64
    scf.yield %1, %slower, %more : tensor<?xf32>, f32, i64
  }
  return %0#0, %0#1, %0#2 : tensor<?xf32>, f32, i64
}
