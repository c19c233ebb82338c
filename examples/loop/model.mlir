// Power iteration: the largest eigenvalue of a symmetric matrix, and its eigenvector. Matrix and vectors stay on
// opencl:0 from the first step to the last; the host decides after every step whether to go on, and for that
// reads one number back: how far the vector moved.
#device = #device.scope<"opencl", 0 : i64, "", "">
#matrix = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#total = affine_map<(i, j) -> ()>
#vector = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>

// matrix: [n, n], start: [n] of length 1, tolerance, most steps -> eigenvector: [n], eigenvalue: [], steps taken
func.func @main(%a: tensor<?x?xf32>, %start: tensor<?xf32>, %tolerance: f32, %limit: i64)
    -> (tensor<?xf32>, tensor<f32>, i64) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %far = arith.constant 0x7F800000 : f32
  %n = tensor.dim %start, %c0 : tensor<?xf32>
  %cell = tensor.empty() : tensor<f32>
  %nothing = linalg.fill ins(%zero : f32) outs(%cell : tensor<f32>) -> tensor<f32>

  %result:3 = scf.while (%x = %start, %moved = %far, %step = %none)
      : (tensor<?xf32>, f32, i64) -> (tensor<?xf32>, f32, i64) {
    %far_away = arith.cmpf ogt, %moved, %tolerance : f32
    %allowed = arith.cmpi slt, %step, %limit : i64
    %continue = arith.andi %far_away, %allowed : i1
    scf.condition(%continue) %x, %moved, %step : tensor<?xf32>, f32, i64
  } do {
  ^bb0(%x: tensor<?xf32>, %old_moved: f32, %step: i64):
    // y = a x
    %space = tensor.empty(%n) : tensor<?xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%space : tensor<?xf32>) -> tensor<?xf32>
    %y = linalg.generic {indexing_maps = [#matrix, #column, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a, %x : tensor<?x?xf32>, tensor<?xf32>) outs(%zeros : tensor<?xf32>)
        attrs = {device.scope = #device} {
    ^bb0(%p: f32, %q: f32, %sum: f32):
      %product = arith.mulf %p, %q : f32
      %new = arith.addf %sum, %product : f32
      linalg.yield %new : f32
    } -> tensor<?xf32>

    // |y|
    %squared = linalg.generic {indexing_maps = [#vector, #scalar], iterator_types = ["reduction"]}
        ins(%y : tensor<?xf32>) outs(%nothing : tensor<f32>) attrs = {device.scope = #device} {
    ^bb0(%p: f32, %sum: f32):
      %product = arith.mulf %p, %p : f32
      %new = arith.addf %sum, %product : f32
      linalg.yield %new : f32
    } -> tensor<f32>
    %length = math.sqrt %squared {device.scope = #device} : tensor<f32>

    // x' = y / |y|
    %next = linalg.generic {indexing_maps = [#vector, #scalar, #vector], iterator_types = ["parallel"]}
        ins(%y, %length : tensor<?xf32>, tensor<f32>) outs(%space : tensor<?xf32>) attrs = {device.scope = #device} {
    ^bb0(%p: f32, %q: f32, %unused: f32):
      %quotient = arith.divf %p, %q : f32
      linalg.yield %quotient : f32
    } -> tensor<?xf32>

    // max |x' - x|: tensor.extract makes it a number, and numbers live on the host
    %change = linalg.generic {indexing_maps = [#vector, #vector, #scalar], iterator_types = ["reduction"]}
        ins(%next, %x : tensor<?xf32>, tensor<?xf32>) outs(%nothing : tensor<f32>) attrs = {device.scope = #device} {
    ^bb0(%p: f32, %q: f32, %most: f32):
      %difference = arith.subf %p, %q : f32
      %distance = math.absf %difference : f32
      %new = arith.maximumf %most, %distance : f32
      linalg.yield %new : f32
    } -> tensor<f32>
    %moved = tensor.extract %change[] : tensor<f32>

    %new_step = arith.addi %step, %one : i64
    scf.yield %next, %moved, %new_step : tensor<?xf32>, f32, i64
  }

  // x . a x
  %value = linalg.generic {indexing_maps = [#matrix, #row, #column, #total],
                           iterator_types = ["reduction", "reduction"]}
      ins(%a, %result#0, %result#0 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%nothing : tensor<f32>)
      attrs = {device.scope = #device} {
  ^bb0(%p: f32, %left: f32, %right: f32, %sum: f32):
    %half = arith.mulf %p, %left : f32
    %product = arith.mulf %half, %right : f32
    %new = arith.addf %sum, %product : f32
    linalg.yield %new : f32
  } -> tensor<f32>
  return %result#0, %value, %result#2 : tensor<?xf32>, tensor<f32>, i64
}
