func.func @f() -> (tensor<4xf32>, tensor<2xi16>) {
  %0 = arith.constant dense_resource<weights> : tensor<4xf32>
  %1 = arith.constant dense_resource<bias> : tensor<2xi16>
  return %0, %1 : tensor<4xf32>, tensor<2xi16>
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F000000400000404000008040",
      bias: "0x0200000001000200"
    }
  }
#-}
