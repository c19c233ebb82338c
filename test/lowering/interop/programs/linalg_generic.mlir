// A body that captures nothing, one that uses linalg.index, and one that captures a value from outside.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @scale_rows(%x: tensor<3x5xf32>, %s: tensor<5xf32>, %bias: f32) -> (tensor<3x5xf32>, tensor<3x5xindex>) {
  %init = tensor.empty() : tensor<3x5xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<3x5xf32>, tensor<5xf32>) outs(%init : tensor<3x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %bias fastmath<reassoc> : f32
    linalg.yield %q : f32
  } -> tensor<3x5xf32>
  %positions = tensor.empty() : tensor<3x5xindex>
  %indices = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"], library_call = "iota"}
      outs(%positions : tensor<3x5xindex>) attrs = {note = "rows"} {
  ^bb0(%out: index):
    %i = linalg.index 1 : index
    linalg.yield %i : index
  } -> tensor<3x5xindex>
  return %scaled, %indices : tensor<3x5xf32>, tensor<3x5xindex>
}
