// RUN: devscope lower %s --stage schedule --schedules %S/Inputs/turned.toml | filecheck %s

#rows = affine_map<(m, p, q, k) -> (m, k)>
#pixels = affine_map<(m, p, q, k) -> (k, p, q)>
#sums = affine_map<(m, p, q, k) -> (m, p, q)>

// Constant rows of 49 columns: vectors of 16 along these would be partly empty.
// CHECK: linalg.contract, b 1, m 32, n 49, k 3, f32: turned with rows 8, columns 32, {{.*}} (turned.toml, contraction 1)
func.func @constant(%x: tensor<3x7x7xf32>) -> tensor<32x7x7xf32> {
  %w = arith.constant dense<"0x000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F0000004000004040000080400000A0400000C040000000000000803F000000400000404000008040"> : tensor<32x3xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x7x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x7x7xf32>) -> tensor<32x7x7xf32>
  %r = linalg.contract indexing_maps = [#rows, #pixels, #sums] ins(%w, %x : tensor<32x3xf32>, tensor<3x7x7xf32>) outs(%f : tensor<32x7x7xf32>) -> tensor<32x7x7xf32>
  return %r : tensor<32x7x7xf32>
}

// What is packed in every call is read as it stands.
// CHECK: linalg.contract, b 1, m 32, n 49, k 3, f32: contraction with rows 16, columns 16, {{.*}} (turned.toml, contraction 2)
func.func @argument(%x: tensor<3x7x7xf32>, %w: tensor<32x3xf32>) -> tensor<32x7x7xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x7x7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x7x7xf32>) -> tensor<32x7x7xf32>
  %r = linalg.contract indexing_maps = [#rows, #pixels, #sums] ins(%w, %x : tensor<32x3xf32>, tensor<3x7x7xf32>) outs(%f : tensor<32x7x7xf32>) -> tensor<32x7x7xf32>
  return %r : tensor<32x7x7xf32>
}
