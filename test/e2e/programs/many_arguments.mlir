// Two dozen arguments that all reach one kernel, and a dozen results.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a0: tensor<?xf32>, %a1: tensor<?xf32>, %a2: tensor<?xf32>, %a3: tensor<?xf32>, %a4: tensor<?xf32>, %a5: tensor<?xf32>, %a6: tensor<?xf32>, %a7: tensor<?xf32>, %a8: tensor<?xf32>, %a9: tensor<?xf32>, %a10: tensor<?xf32>, %a11: tensor<?xf32>,
                %s0: f32, %s1: f32, %s2: f32, %s3: f32, %s4: f32, %s5: f32, %s6: f32, %s7: f32, %s8: f32, %s9: f32, %s10: f32, %s11: f32)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
        tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a0, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                     affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                     affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}
    ins(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10, %a11 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
        tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
    outs(%empty : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32, %b4: f32, %b5: f32, %b6: f32, %b7: f32, %b8: f32, %b9: f32, %b10: f32, %b11: f32, %out: f32):
    %p0 = arith.mulf %b0, %s0 : f32
    %p1 = arith.mulf %b1, %s1 : f32
    %p2 = arith.mulf %b2, %s2 : f32
    %p3 = arith.mulf %b3, %s3 : f32
    %p4 = arith.mulf %b4, %s4 : f32
    %p5 = arith.mulf %b5, %s5 : f32
    %p6 = arith.mulf %b6, %s6 : f32
    %p7 = arith.mulf %b7, %s7 : f32
    %p8 = arith.mulf %b8, %s8 : f32
    %p9 = arith.mulf %b9, %s9 : f32
    %p10 = arith.mulf %b10, %s10 : f32
    %p11 = arith.mulf %b11, %s11 : f32
    %q1 = arith.addf %p0, %p1 : f32
    %q2 = arith.addf %q1, %p2 : f32
    %q3 = arith.addf %q2, %p3 : f32
    %q4 = arith.addf %q3, %p4 : f32
    %q5 = arith.addf %q4, %p5 : f32
    %q6 = arith.addf %q5, %p6 : f32
    %q7 = arith.addf %q6, %p7 : f32
    %q8 = arith.addf %q7, %p8 : f32
    %q9 = arith.addf %q8, %p9 : f32
    %q10 = arith.addf %q9, %p10 : f32
    %q11 = arith.addf %q10, %p11 : f32
    linalg.yield %q11 : f32
  } -> tensor<?xf32>
  %1 = arith.addf %0, %a0 {device.scope = #dev} : tensor<?xf32>
  %2 = arith.addf %0, %a1 {device.scope = #dev} : tensor<?xf32>
  %3 = arith.addf %0, %a2 {device.scope = #dev} : tensor<?xf32>
  %4 = arith.addf %0, %a3 {device.scope = #dev} : tensor<?xf32>
  %5 = arith.addf %0, %a4 {device.scope = #dev} : tensor<?xf32>
  %6 = arith.addf %0, %a5 {device.scope = #dev} : tensor<?xf32>
  %7 = arith.addf %0, %a6 {device.scope = #dev} : tensor<?xf32>
  %8 = arith.addf %0, %a7 {device.scope = #dev} : tensor<?xf32>
  %9 = arith.addf %0, %a8 {device.scope = #dev} : tensor<?xf32>
  %10 = arith.addf %0, %a9 {device.scope = #dev} : tensor<?xf32>
  %11 = arith.addf %0, %a10 {device.scope = #dev} : tensor<?xf32>
  %12 = arith.addf %0, %a11 {device.scope = #dev} : tensor<?xf32>
  return %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12
    : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
