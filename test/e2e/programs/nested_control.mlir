// An scf.while in an scf.if in an scf.for, with host decisions on device data at every level.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>, %limit: f32) -> (tensor<4xf32>, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %half = arith.constant dense<0.5> : tensor<4xf32>
  %0:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x, %count = %none) -> (tensor<4xf32>, i32) {
    %1 = arith.addf %t, %x {device.scope = #dev} : tensor<4xf32>
    %value = tensor.extract %1[%i] : tensor<4xf32>
    %large = arith.cmpf ogt, %value, %limit : f32
    %2:2 = scf.if %large -> (tensor<4xf32>, i32) {
      %3:2 = scf.while (%u = %1, %c = %count) : (tensor<4xf32>, i32) -> (tensor<4xf32>, i32) {
        %current = tensor.extract %u[%i] : tensor<4xf32>
        %continue = arith.cmpf ogt, %current, %limit : f32
        scf.condition(%continue) %u, %c : tensor<4xf32>, i32
      } do {
      ^bb0(%u: tensor<4xf32>, %c: i32):
        %4 = arith.mulf %u, %half {device.scope = #dev} : tensor<4xf32>
        %5 = arith.addi %c, %one : i32
        scf.yield %4, %5 : tensor<4xf32>, i32
      }
      scf.yield %3#0, %3#1 : tensor<4xf32>, i32
    } else {
      %3 = math.absf %1 : tensor<4xf32>
      scf.yield %3, %count : tensor<4xf32>, i32
    }
    scf.yield %2#0, %2#1 : tensor<4xf32>, i32
  }
  return %0#0, %0#1 : tensor<4xf32>, i32
}
