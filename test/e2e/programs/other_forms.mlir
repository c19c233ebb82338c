// What becomes something simpler before or after planning: packing, bit casts, globals that
// nobody writes, allocations of values, queries of shapes.
#dev = #device.scope<"opencl", 0 : i64, "", "">
ml_program.global private @weights(dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xi32>, tensor<i32>, index) {
  %w = ml_program.global_load_const @weights : tensor<4xf32>
  %copy = bufferization.alloc_tensor() copy(%x) {device.scope = #dev} : tensor<?x4xf32>
  %0 = linalg.map {math.absf} ins(%x : tensor<?x4xf32>) outs(%copy : tensor<?x4xf32>) {device.scope = #dev}
  bufferization.dealloc_tensor %copy : tensor<?x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<4xf32>) outs(%0 : tensor<?x4xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x4xf32>
  %2 = tensor.bitcast %1 : tensor<?x4xf32> to tensor<?x4xi32>
  %3 = arith.addi %2, %2 {device.scope = #dev} : tensor<?x4xi32>
  %4 = stablehlo.get_dimension_size %1, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %shape = shape.shape_of %1 : tensor<?x4xf32> -> tensor<2xindex>
  %c1 = arith.constant 1 : index
  %5 = tensor.extract %shape[%c1] : tensor<2xindex>
  return %1, %3, %4, %5 : tensor<?x4xf32>, tensor<?x4xi32>, tensor<i32>, index
}
func.func @pack(%x: tensor<?x3xf32>, %n: index) -> tensor<2x?x4x2xf32> {
  %empty = tensor.empty(%n) : tensor<2x?x4x2xf32>
  %zero = arith.constant 0.0 : f32
  %0 = linalg.pack %x padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1]
    inner_tiles = [4, 2] into %empty {device.scope = #dev} : tensor<?x3xf32> -> tensor<2x?x4x2xf32>
  return %0 : tensor<2x?x4x2xf32>
}
func.func @unpack(%x: tensor<4x2x2x2xf32>) -> tensor<7x4xf32> {
  %empty = tensor.empty() : tensor<7x4xf32>
  %0 = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %empty {device.scope = #dev}
    : tensor<4x2x2x2xf32> -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}
