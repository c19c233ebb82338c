// Types that xDSL knows only in part or not at all, as operands, results and inside function types.
#csr = #sparse_tensor.encoding<{map = (d0, d1) -> (d0 : dense, d1 : compressed)}>
func.func @f(%a: tensor<4x4xf64, #csr>, %q: tensor<4x!quant.uniform<i8:f32, 0.5:3>>, %t: !llvm.struct<"list", (i32, ptr)>, %v: vector<2x[4]xi1>) -> tensor<4x4xf64, #csr> {
  %0 = arith.addf %a, %a : tensor<4x4xf64, #csr>
  %1:3 = "foo.use"(%q, %t, %v) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>, !llvm.struct<"list", (i32, ptr)>, vector<2x[4]xi1>) -> (!async.token, tuple<none, tuple<>>, !foo.opaque<any | text>)
  return %0 : tensor<4x4xf64, #csr>
}
