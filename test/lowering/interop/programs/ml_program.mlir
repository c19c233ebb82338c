ml_program.global private mutable @counter(dense<0> : tensor<i64>) : tensor<i64>
ml_program.global private @external(#ml_program.extern : tensor<4xi32>) : tensor<4xi32>
func.func @f(%x: tensor<i64>) -> tensor<i64> {
  %0 = ml_program.global_load @counter : tensor<i64>
  ml_program.global_store @counter = %x : tensor<i64>
  return %0 : tensor<i64>
}
