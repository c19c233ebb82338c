// One function called on the host and on two devices: a clone for each. A recursive one, and one with a loop.
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @layer(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%z : tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = math.tanh %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
func.func private @repeat(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>, %times: index) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %times step %c1 iter_args(%a = %x) -> (tensor<?x4xf32>) {
    %0 = func.call @layer(%a, %w) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
    scf.yield %0 : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}
func.func private @down(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>, %n: index) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi sgt, %n, %c0 : index
  %r = scf.if %more -> (tensor<?x4xf32>) {
    %m = arith.subi %n, %c1 : index
    %0 = func.call @layer(%x, %w) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
    %1 = func.call @down(%0, %w, %m) : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
    scf.yield %1 : tensor<?x4xf32>
  } else {
    scf.yield %x : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %c3 = arith.constant 3 : index
  %a = func.call @layer(%x, %w) {device.scope = #host} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %b = func.call @repeat(%a, %w, %c3) {device.scope = #first} : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %c = func.call @repeat(%b, %w, %c3) {device.scope = #second} : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %d = func.call @down(%a, %w, %c3) {device.scope = #second} : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  %e = func.call @down(%d, %w, %c3) {device.scope = #host} : (tensor<?x4xf32>, tensor<4x4xf32>, index) -> tensor<?x4xf32>
  return %b, %c, %e : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}
