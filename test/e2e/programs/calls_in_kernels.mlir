// Functions of scalars called by the body of a computation, by each other, and by the host.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#id = affine_map<(d0) -> (d0)>
func.func private @cube(%a: f32) -> f32 {
  %s = call @square(%a) : (f32) -> f32
  %0 = arith.mulf %s, %a : f32
  return %0 : f32
}
func.func private @square(%a: f32) -> f32 {
  %0 = arith.mulf %a, %a : f32
  return %0 : f32
}
func.func private @clipped(%a: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %negative = arith.cmpf olt, %a, %zero : f32
  cf.cond_br %negative, ^end(%zero : f32), ^positive
^positive:
  %0 = call @cube(%a) : (f32) -> f32
  cf.br ^end(%0 : f32)
^end(%r: f32):
  return %r : f32
}
func.func @main(%x: tensor<?xf32>, %s: f32) -> (tensor<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %out: f32):
    %1 = func.call @cube(%a) : (f32) -> f32
    %2 = func.call @clipped(%1) : (f32) -> f32
    %3 = arith.addf %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<?xf32>
  %4 = call @cube(%s) : (f32) -> f32
  return %0, %4 : tensor<?xf32>, f32
}
