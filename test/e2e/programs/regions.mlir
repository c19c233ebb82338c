// A function that is one region with a target of its own; regions around host work that needs what they read back;
// a loop with regions of two devices in it; a function all of whose regions are the host's.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#fast = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
#here = #device.scope<"cpu", 0 : i64, "", "">

func.func private @frame(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "device.region"() ({
    %1 = math.tanh %x : tensor<?xf32>
    %2 = math.exp %1 : tensor<?xf32>
    "device.yield"(%2) : (tensor<?xf32>) -> ()
  }) {scope = #fast} : () -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @twice(%s: f32) -> f32 {
  %0 = arith.addf %s, %s : f32
  return %0 : f32
}
func.func private @on_host(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "device.region"() ({
    %1 = math.absf %x : tensor<?xf32>
    "device.yield"(%1) : (tensor<?xf32>) -> ()
  }) {scope = #here} : () -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %count: i64) -> (tensor<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = arith.index_cast %count : i64 to index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = call @frame(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = tensor.extract %0[%c0] {device.scope = #dev} : tensor<?xf32>
  %2 = call @twice(%1) : (f32) -> f32
  %3 = arith.addf %2, %one : f32
  %4 = tensor.splat %3[%size] : tensor<?xf32>
  %5 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0) -> tensor<?xf32> {
    %6 = "device.region"() ({
      %7 = math.tanh %a : tensor<?xf32>
      "device.yield"(%7) : (tensor<?xf32>) -> ()
    }) {scope = #other} : () -> tensor<?xf32>
    %8 = func.call @on_host(%6) : (tensor<?xf32>) -> tensor<?xf32>
    %9 = "device.region"() ({
      %10 = arith.addf %8, %4 : tensor<?xf32>
      %11 = math.sin %10 : tensor<?xf32>
      "device.yield"(%11) : (tensor<?xf32>) -> ()
    }) {scope = #dev} : () -> tensor<?xf32>
    scf.yield %9 : tensor<?xf32>
  }
  return %5, %3 : tensor<?xf32>, f32
}
