// RUN: devscope lower %s --stage schedule | filecheck %s

// Which operations are one pass over rows.
// CHECK: rows_schedule.mlir:{{[0-9]+}}:{{.*}} rows ?, columns {{.*}}, f32: loops over rows
// CHECK-COUNT-4: rows_schedule.mlir:{{.*}} rows ?, columns {{.*}}, f32: in the loops of {{.*}}rows_schedule.mlir:
func.func @softmax(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Operations between which others are filled: a layer norm as torch-mlir writes it, with sums in f64.
// CHECK:      linalg.generic, rows 64, columns 128, f64: loops over rows
// CHECK-COUNT-5: in the loops of
func.func @widened(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f64
  %width = arith.constant 128.0 : f64
  %rows = tensor.empty() : tensor<64xf64>
  %wide = tensor.empty() : tensor<64x128xf64>
  %narrow = tensor.empty() : tensor<64x128xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x128xf32>) outs(%wide : tensor<64x128xf64>) {
  ^bb0(%a: f32, %o: f64):
    %w = arith.extf %a : f32 to f64
    linalg.yield %w : f64
  } -> tensor<64x128xf64>
  %init = linalg.fill ins(%zero : f64) outs(%rows : tensor<64xf64>) -> tensor<64xf64>
  %sum = linalg.reduce {arith.addf} ins(%0 : tensor<64x128xf64>) outs(%init : tensor<64xf64>) dimensions = [1]
  %more = tensor.empty() : tensor<64xf64>
  %again = linalg.fill ins(%zero : f64) outs(%more : tensor<64xf64>) -> tensor<64xf64>
  %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%0, %sum : tensor<64x128xf64>, tensor<64xf64>) outs(%again : tensor<64xf64>) {
  ^bb0(%a: f64, %total: f64, %acc: f64):
    %mean = arith.divf %total, %width : f64
    %centred = arith.subf %a, %mean : f64
    %square = arith.mulf %centred, %centred : f64
    %s = arith.addf %acc, %square : f64
    linalg.yield %s : f64
  } -> tensor<64xf64>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%0, %sum, %squares : tensor<64x128xf64>, tensor<64xf64>, tensor<64xf64>) outs(%narrow : tensor<64x128xf32>) {
  ^bb0(%a: f64, %total: f64, %s: f64, %o: f32):
    %mean = arith.divf %total, %width : f64
    %centred = arith.subf %a, %mean : f64
    %inverse = math.rsqrt %s : f64
    %1 = arith.mulf %centred, %inverse : f64
    %2 = arith.truncf %1 : f64 to f32
    linalg.yield %2 : f32
  } -> tensor<64x128xf32>
  return %result : tensor<64x128xf32>
}

// Sums over an axis in front of others: rows are those of the axes that stand before it, of which there may be none.
// CHECK:      linalg.fill, rows 16, columns 64, f32: loops over rows
// CHECK:      linalg.reduce, rows 16, columns 2048, f32: in the loops of
// CHECK:      linalg.generic, rows 16, columns 2048, f32: in the loops of
func.func @middle(%x: tensor<16x32x64xf32>) -> tensor<16x64xf32> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %first = linalg.fill ins(%least : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %max = linalg.reduce {arith.maximumf} ins(%x : tensor<16x32x64xf32>) outs(%first : tensor<16x64xf32>)
    dimensions = [1]
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>,
      affine_map<(i, j, k) -> (i, k)>], iterator_types = ["parallel", "reduction", "parallel"]}
    ins(%x, %max : tensor<16x32x64xf32>, tensor<16x64xf32>) outs(%z : tensor<16x64xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  return %sum : tensor<16x64xf32>
}
