// Scalar arguments and results of every type, used by the host and by device work.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: f32, %b: f64, %c: f16, %i: i32, %j: i64, %k: index, %flag: i1, %x: tensor<?xf32>)
    -> (f32, f64, f16, i32, i64, index, i1, tensor<?xf32>) {
  %0 = arith.mulf %a, %a : f32
  %1 = math.exp %b : f64
  %2 = arith.addf %c, %c : f16
  %3 = arith.muli %i, %i : i32
  %wide = arith.extsi %i : i32 to i64
  %4 = arith.subi %j, %wide : i64
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %5 = arith.addi %k, %n : index
  %true = arith.constant true
  %6 = arith.xori %flag, %true : i1
  %integer = arith.sitofp %i : i32 to f32
  %narrow = arith.truncf %b : f64 to f32
  %half = arith.extf %c : f16 to f32
  %long = arith.sitofp %j : i64 to f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) attrs = {device.scope = #dev} {
  ^bb0(%value: f32, %out: f32):
    %position = linalg.index 0 : index
    %place = arith.addi %position, %k : index
    %place64 = arith.index_cast %place : index to i64
    %place32 = arith.sitofp %place64 : i64 to f32
    %8 = arith.mulf %value, %a : f32
    %9 = arith.addf %8, %integer : f32
    %10 = arith.addf %9, %narrow : f32
    %11 = arith.addf %10, %half : f32
    %12 = arith.addf %11, %long : f32
    %13 = arith.addf %12, %place32 : f32
    %14 = arith.select %flag, %13, %value : f32
    linalg.yield %14 : f32
  } -> tensor<?xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : f32, f64, f16, i32, i64, index, i1, tensor<?xf32>
}
