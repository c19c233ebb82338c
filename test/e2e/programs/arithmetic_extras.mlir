// Rarer scalar operations in the body of a generic: remainders, minimum and maximum that ignore NaN, integer
// powers, carries, the index dialect, affine maps.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %k: tensor<?xi32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %ef = tensor.empty(%n) : tensor<?xf32>
  %ei = tensor.empty(%n) : tensor<?xi32>
  %el = tensor.empty(%n) : tensor<?xi64>
  %0:6 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
    ins(%x, %y, %k : tensor<?xf32>, tensor<?xf32>, tensor<?xi32>)
    outs(%ef, %ef, %ei, %ei, %ef, %el
         : tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi64>)
    attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %b: f32, %c: i32, %o0: f32, %o1: f32, %o2: i32, %o3: i32, %o4: f32, %o5: i64):
    %1 = arith.remf %a, %b : f32
    %2 = arith.maxnumf %a, %b : f32
    %three = arith.constant 3 : i32
    %3 = math.ipowi %c, %three : i32
    %low, %high = arith.mulsi_extended %c, %3 : i32
    %4 = arith.addi %low, %high : i32
    %5 = math.fpowi %b, %three : f32, i32
    %i = linalg.index 0 : index
    %two = index.constant 2
    %6 = index.mul %i, %two
    %7 = affine.apply affine_map<(d0, d1) -> (d0 floordiv 3 + d1 mod 5)>(%6, %i)
    %8 = arith.index_cast %7 : index to i64
    linalg.yield %1, %2, %3, %4, %5, %8 : f32, f32, i32, i32, f32, i64
  } -> (tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5
    : tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi64>
}
