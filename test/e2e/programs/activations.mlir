// sigmoid, silu, gelu (exact and with tanh), softplus, leaky relu: chains that fuse on either device.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x6xf32>)
    -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %ones = tensor.splat %one[%n] : tensor<?x6xf32>
  %halves = tensor.splat %half[%n] : tensor<?x6xf32>
  %negated = arith.negf %x {device.scope = #dev} : tensor<?x6xf32>
  %e = math.exp %negated {device.scope = #dev} : tensor<?x6xf32>
  %denominator = arith.addf %e, %ones {device.scope = #dev} : tensor<?x6xf32>
  %sigmoid = arith.divf %ones, %denominator {device.scope = #dev} : tensor<?x6xf32>
  %silu = arith.mulf %x, %sigmoid : tensor<?x6xf32>
  %r = arith.constant 0.70710678 : f32
  %rs = tensor.splat %r[%n] : tensor<?x6xf32>
  %scaled = arith.mulf %x, %rs : tensor<?x6xf32>
  %erf = math.erf %scaled {device.scope = #dev} : tensor<?x6xf32>
  %erf1 = arith.addf %erf, %ones {device.scope = #dev} : tensor<?x6xf32>
  %xh = arith.mulf %x, %halves {device.scope = #dev} : tensor<?x6xf32>
  %gelu = arith.mulf %xh, %erf1 {device.scope = #dev} : tensor<?x6xf32>
  %empty = tensor.empty(%n) : tensor<?x6xf32>
  %others:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x6xf32>) outs(%empty, %empty : tensor<?x6xf32>, tensor<?x6xf32>) {
  ^bb0(%a: f32, %out0: f32, %out1: f32):
    %zero = arith.constant 0.0 : f32
    %slope = arith.constant 0.01 : f32
    %0 = math.exp %a : f32
    %1 = math.log1p %0 : f32
    %2 = arith.mulf %a, %slope : f32
    %3 = arith.cmpf oge, %a, %zero : f32
    %4 = arith.select %3, %a, %2 : f32
    linalg.yield %1, %4 : f32, f32
  } -> (tensor<?x6xf32>, tensor<?x6xf32>)
  return %sigmoid, %silu, %gelu, %others#0, %others#1
    : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>
}
