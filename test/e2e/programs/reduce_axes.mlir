// Reductions per row and per column, as linalg.reduce and as a generic with a reduction in the middle.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>, %y: tensor<3x?x4xi64>) -> (tensor<?xf32>, tensor<?xf32>, tensor<3x4xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %rows = tensor.empty(%m) : tensor<?xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%rows0 : tensor<?xf32>) dimensions = [1]
    {device.scope = #dev}
  %columns = tensor.empty(%n) : tensor<?xf32>
  %columns0 = linalg.fill ins(%lowest : f32) outs(%columns : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.reduce {arith.maximumf} ins(%x : tensor<?x?xf32>) outs(%columns0 : tensor<?xf32>) dimensions = [0]
  %init = arith.constant dense<-5> : tensor<3x4xi64>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%y : tensor<3x?x4xi64>) outs(%init : tensor<3x4xi64>) attrs = {device.scope = #dev} {
  ^bb0(%a: i64, %acc: i64):
    %square = arith.muli %a, %a : i64
    %3 = arith.addi %acc, %square : i64
    linalg.yield %3 : i64
  } -> tensor<3x4xi64>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<3x4xi64>
}
