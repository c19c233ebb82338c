// Code for several targets on one device, and for another device: targets of scopes, of an exposed function with its
// host part, of a private function that code for another target calls, and of scalar code that both sides call.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 128 : i64}>, "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
#id = affine_map<(d0) -> (d0)>

func.func private @square_plus(%x: f32, %y: f32) -> f32 {
  %0 = func.call @square(%x) : (f32) -> f32
  %1 = arith.addf %0, %y : f32
  return %1 : f32
}
func.func private @square(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  return %0 : f32
}

// Called by the host and by code for another target.
func.func private @slim_layer(%x: tensor<?xf32> {device.scope = #slim}) -> (tensor<?xf32> {device.scope = #slim}) {
  %0 = math.tanh %x {device.scope = #slim} : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @net(%x: tensor<?xf32> {device.scope = #wide}) -> (tensor<?xf32> {device.scope = #wide}) {
  %0 = math.exp %x {device.scope = #wide} : tensor<?xf32>
  %1 = call @slim_layer(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = arith.addf %0, %1 {device.scope = #wide} : tensor<?xf32>
  return %2 : tensor<?xf32>
}

func.func @main(%x: tensor<?xf32>, %s: f32) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, f32) {
  %0 = math.absf %x {device.scope = #dev} : tensor<?xf32>
  %1 = math.tanh %0 {device.scope = #wide} : tensor<?xf32>
  %2 = math.exp %1 {device.scope = #slim} : tensor<?xf32>
  %3 = arith.addf %2, %x {device.scope = #other} : tensor<?xf32>
  %4 = call @net(%3) : (tensor<?xf32>) -> tensor<?xf32>
  %5 = call @slim_layer(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%5 : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32):
    %p = func.call @square_plus(%a, %s) : (f32, f32) -> f32
    linalg.yield %p : f32
  } -> tensor<?xf32>
  %7 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%6 : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {device.scope = #other} {
  ^bb0(%a: f32, %b: f32):
    %p = func.call @square(%a) : (f32) -> f32
    linalg.yield %p : f32
  } -> tensor<?xf32>
  %8 = call @square_plus(%s, %s) : (f32, f32) -> f32
  return %3, %4, %7, %8 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, f32
}

func.func @exposed(%x: tensor<?xf32>, %y: tensor<?xf32> {device.scope = #other}) -> (tensor<?xf32>, tensor<?xf32>)
    attributes {device.target = #device.target<"opencl", {workgroup = 64 : i64}>} {
  %0 = math.tanh %x {device.scope = #dev} : tensor<?xf32>
  %1 = math.exp %y {device.scope = #other} : tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
