// A counted loop and a branch in the body of a generic: a polynomial whose coefficients are read by number.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %coefficients: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %degree = tensor.dim %coefficients, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %out: f32):
    %positive = arith.cmpf ogt, %a, %zero : f32
    %1 = scf.if %positive -> (f32) {
      %2 = scf.for %i = %c0 to %degree step %c1 iter_args(%acc = %zero) -> (f32) {
        %coefficient = tensor.extract %coefficients[%i] : tensor<?xf32>
        %3 = arith.mulf %acc, %a : f32
        %4 = arith.addf %3, %coefficient : f32
        scf.yield %4 : f32
      }
      scf.yield %2 : f32
    } else {
      scf.yield %a : f32
    }
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
