// Device functions that call each other, on a target that cannot call and on one that can.
#no = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {calls = false}>, "">
#yes = #device.scope<"opencl", 1 : i64, "", "">
func.func private @inner(%x: tensor<?xf32> {device.scope = #no}, %s: f32) -> (tensor<?xf32> {device.scope = #no}, f32) {
  %0 = math.tanh %x : tensor<?xf32>
  %1 = arith.mulf %s, %s : f32
  return %0, %1 : tensor<?xf32>, f32
}
func.func private @branches(%x: tensor<?xf32> {device.scope = #no}, %c: i1) -> (tensor<?xf32> {device.scope = #no}) {
  cf.cond_br %c, ^a, ^b(%x : tensor<?xf32>)
^a:
  %0 = arith.addf %x, %x : tensor<?xf32>
  cf.br ^b(%0 : tensor<?xf32>)
^b(%r: tensor<?xf32>):
  return %r : tensor<?xf32>
}
func.func private @outer(%x: tensor<?xf32> {device.scope = #no}, %s: f32, %c: i1)
    -> (tensor<?xf32> {device.scope = #no}, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %x, %f = %s) -> (tensor<?xf32>, f32) {
    %1:2 = func.call @inner(%t, %f) : (tensor<?xf32>, f32) -> (tensor<?xf32>, f32)
    scf.yield %1#0, %1#1 : tensor<?xf32>, f32
  }
  %2 = call @branches(%0#0, %c) : (tensor<?xf32>, i1) -> tensor<?xf32>
  return %2, %0#1 : tensor<?xf32>, f32
}
func.func private @callee(%x: tensor<?xf32> {device.scope = #yes}) -> (tensor<?xf32> {device.scope = #yes}) {
  %0 = math.sin %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @caller(%x: tensor<?xf32> {device.scope = #yes}) -> (tensor<?xf32> {device.scope = #yes}) {
  %0 = call @callee(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = arith.addf %0, %x : tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %s: f32, %c: i1) -> (tensor<?xf32>, tensor<?xf32>, f32) {
  %0:2 = call @outer(%x, %s, %c) : (tensor<?xf32>, f32, i1) -> (tensor<?xf32>, f32)
  %1 = call @caller(%0#0) : (tensor<?xf32>) -> tensor<?xf32>
  return %0#0, %1, %0#1 : tensor<?xf32>, tensor<?xf32>, f32
}
