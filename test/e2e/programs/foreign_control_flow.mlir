// Loops and branches of affine and StableHLO around work on the device.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#between = affine_set<(i)[n] : (i - 1 >= 0, n - i >= 0, i mod 2 - 1 == 0)>
func.func @affine(%x: tensor<8xf32>, %n: index) -> (tensor<8xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6 : index
  %0 = affine.if #between(%n)[%six] -> tensor<8xf32> {
    %sin = math.sin %x {device.scope = #dev} : tensor<8xf32>
    affine.yield %sin : tensor<8xf32>
  } else {
    %never = affine.for %i = 0 to 0 iter_args(%v = %x) -> tensor<8xf32> {
      affine.yield %x : tensor<8xf32>
    }
    affine.yield %never : tensor<8xf32>
  }
  %1:2 = affine.for %i = max affine_map<(i) -> (i - 4, 1)>(%n) to min affine_map<(i) -> (i + 5, 8)>(%n) step 2
      iter_args(%v = %0, %sum = %zero) -> (tensor<8xf32>, f32) {
    %j = affine.apply affine_map<(i) -> (7 - i)>(%i)
    %e = tensor.extract %x[%j] : tensor<8xf32>
    %s = arith.addf %sum, %e : f32
    %w = arith.addf %v, %x : tensor<8xf32>
    affine.yield %w, %s : tensor<8xf32>, f32
  } {device.scope = #dev}
  return %1#0, %1#1 : tensor<8xf32>, f32
}
func.func @stablehlo(%x: tensor<8xf32>, %n: tensor<i32>) -> (tensor<8xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8xf32>
  cond {
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %odd = stablehlo.and %i, %one : tensor<i32>
    %is_odd = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = "stablehlo.if"(%is_odd) ({
      %0 = stablehlo.sine %v {device.scope = #dev} : tensor<8xf32>
      stablehlo.return %0 : tensor<8xf32>
    }, {
      %0 = stablehlo.add %v, %x : tensor<8xf32>
      stablehlo.return %0 : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w : tensor<i32>, tensor<8xf32>
  }
  return %r#1, %r#0 : tensor<8xf32>, tensor<i32>
}
func.func @case(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %r = "stablehlo.case"(%n) ({
    %0 = stablehlo.sine %x {device.scope = #dev} : tensor<8xf32>
    stablehlo.return %0 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }, {
    %0 = stablehlo.negate %x : tensor<8xf32>
    stablehlo.return %0 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
