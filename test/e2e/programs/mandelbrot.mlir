// A loop with a data-dependent exit in the body of a generic: every work-item iterates on its own.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%re: tensor<?xf64>, %im: tensor<?xf64>) -> tensor<?x?xi32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %im, %c0 : tensor<?xf64>
  %n = tensor.dim %re, %c0 : tensor<?xf64>
  %empty = tensor.empty(%m, %n) : tensor<?x?xi32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%re, %im : tensor<?xf64>, tensor<?xf64>) outs(%empty : tensor<?x?xi32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f64, %b: f64, %out: i32):
    %zero = arith.constant 0.0 : f64
    %four = arith.constant 4.0 : f64
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %most = arith.constant 30 : i32
    %1:3 = scf.while (%u = %zero, %v = %zero, %count = %none) : (f64, f64, i32) -> (f64, f64, i32) {
      %uu = arith.mulf %u, %u : f64
      %vv = arith.mulf %v, %v : f64
      %size = arith.addf %uu, %vv : f64
      %inside = arith.cmpf ole, %size, %four : f64
      %left = arith.cmpi slt, %count, %most : i32
      %continue = arith.andi %inside, %left : i1
      scf.condition(%continue) %u, %v, %count : f64, f64, i32
    } do {
    ^bb0(%u: f64, %v: f64, %count: i32):
      %uu = arith.mulf %u, %u : f64
      %vv = arith.mulf %v, %v : f64
      %uv = arith.mulf %u, %v : f64
      %difference = arith.subf %uu, %vv : f64
      %next_u = arith.addf %difference, %a : f64
      %twice = arith.addf %uv, %uv : f64
      %next_v = arith.addf %twice, %b : f64
      %next = arith.addi %count, %one : i32
      scf.yield %next_u, %next_v, %next : f64, f64, i32
    }
    linalg.yield %1#2 : i32
  } -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}
