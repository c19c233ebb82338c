func.func @sum(%n: index, %x: tensor<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant -0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %e = tensor.extract %x[%i] : tensor<?xf32>
    %s = arith.addf %acc, %e : f32
    scf.yield %s : f32
  } {unroll = 4 : i32}
  return %r : f32
}
