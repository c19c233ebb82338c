// Power iteration: the largest eigenvalue of a symmetric matrix and its eigenvector. The loop's condition is
// checked on the host, which reads one number back per step; vectors and matrix stay on opencl:0 throughout.
#device = #device.scope<"opencl", 0 : i64, "", "">
#matrix = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#vector = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>

// matrix: [n, n], start: [n] of length 1, tolerance, most steps -> eigenvector: [n], eigenvalue, steps taken
func.func @main(%a: tensor<?x?xf32>, %start: tensor<?xf32>, %tolerance: f32, %limit: i64)
    -> (tensor<?xf32>, f32, i64) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %far = arith.constant 0x7F800000 : f32
  %n = tensor.dim %start, %c0 : tensor<?xf32>

  %result:4 = scf.while (%x = %start, %change = %far, %value = %zero, %step = %none)
      : (tensor<?xf32>, f32, f32, i64) -> (tensor<?xf32>, f32, f32, i64) {
    %moving = arith.cmpf ogt, %change, %tolerance : f32
    %allowed = arith.cmpi slt, %step, %limit : i64
    %continue = arith.andi %moving, %allowed : i1
    scf.condition(%continue) %x, %change, %value, %step : tensor<?xf32>, f32, f32, i64
  } do {
  ^bb0(%x: tensor<?xf32>, %change: f32, %value: f32, %step: i64):
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

    // |y|, which the host reads
    %cell = tensor.empty() : tensor<f32>
    %nothing = linalg.fill ins(%zero : f32) outs(%cell : tensor<f32>) -> tensor<f32>
    %square = linalg.generic {indexing_maps = [#vector, #scalar], iterator_types = ["reduction"]}
        ins(%y : tensor<?xf32>) outs(%nothing : tensor<f32>) attrs = {device.scope = #device} {
    ^bb0(%p: f32, %sum: f32):
      %product = arith.mulf %p, %p : f32
      %new = arith.addf %sum, %product : f32
      linalg.yield %new : f32
    } -> tensor<f32>
    %length_squared = tensor.extract %square[] : tensor<f32>
    %length = math.sqrt %length_squared : f32

    // x' = y / |y|
    %next = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
        ins(%y : tensor<?xf32>) outs(%space : tensor<?xf32>) attrs = {device.scope = #device} {
    ^bb0(%p: f32, %unused: f32):
      %quotient = arith.divf %p, %length : f32
      linalg.yield %quotient : f32
    } -> tensor<?xf32>

    %difference = arith.subf %length, %value : f32
    %new_change = math.absf %difference : f32
    %new_step = arith.addi %step, %one : i64
    scf.yield %next, %new_change, %length, %new_step : tensor<?xf32>, f32, f32, i64
  }
  return %result#0, %result#2, %result#3 : tensor<?xf32>, f32, i64
}
