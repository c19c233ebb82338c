// Scatter: counts per bucket, with positions read from a tensor; a serial loop of extract and insert.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%ids: tensor<?xi32>) -> (tensor<6xi64>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %zeros = arith.constant dense<0> : tensor<6xi64>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%counts = %zeros) -> (tensor<6xi64>) {
    %id = tensor.extract %ids[%i] {device.scope = #dev} : tensor<?xi32>
    %bucket = arith.index_cast %id : i32 to index
    %old = tensor.extract %counts[%bucket] {device.scope = #dev} : tensor<6xi64>
    %new = arith.addi %old, %one : i64
    %updated = tensor.insert %new into %counts[%bucket] {device.scope = #dev} : tensor<6xi64>
    scf.yield %updated : tensor<6xi64>
  }
  %zero = arith.constant dense<0> : tensor<i64>
  %total = linalg.reduce {arith.addi} ins(%0 : tensor<6xi64>) outs(%zero : tensor<i64>) dimensions = [0]
    {device.scope = #dev}
  return %0, %total : tensor<6xi64>, tensor<i64>
}
