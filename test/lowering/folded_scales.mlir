// RUN: devscope lower %s --stage host-llvm | filecheck %s

// A product with constants for each channel goes into constant weights; what is left is one sum.
// CHECK-NOT: {{= fmul|fdiv|fsub|sqrt}}
// CHECK: = fadd
// CHECK-NOT: {{= fmul|fdiv|fsub|sqrt}}

#rows = affine_map<(m, p, q, k) -> (m, k)>
#pixels = affine_map<(m, p, q, k) -> (k, p, q)>
#sums = affine_map<(m, p, q, k) -> (m, p, q)>
#own = affine_map<(c, p, q) -> (c, p, q)>
#channel = affine_map<(c, p, q) -> (c)>

func.func @constant_weights(%x: tensor<12x40x40xf32>) -> tensor<4x40x40xf32> {
  %w = arith.constant dense<"0x0000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C0400000E0400000803F0000004000004040000080400000A0400000C040"> : tensor<4x12xf32>
  %mean = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %variance = arith.constant dense<[0.5, 1.5, 2.5, 3.5]> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x40x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x40x40xf32>) -> tensor<4x40x40xf32>
  %sums = linalg.contract indexing_maps = [#rows, #pixels, #sums] ins(%w, %x : tensor<4x12xf32>, tensor<12x40x40xf32>) outs(%f : tensor<4x40x40xf32>) -> tensor<4x40x40xf32>
  %r = linalg.generic {indexing_maps = [#own, #channel, #channel, #own], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums, %mean, %variance : tensor<4x40x40xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x40x40xf32>) {
  ^bb0(%s: f32, %m: f32, %v: f32, %o: f32):
    %root = math.sqrt %v : f32
    %around = arith.subf %s, %m : f32
    %scaled = arith.divf %around, %root : f32
    %more = arith.addf %scaled, %m : f32
    linalg.yield %more : f32
  } -> tensor<4x40x40xf32>
  return %r : tensor<4x40x40xf32>
}
