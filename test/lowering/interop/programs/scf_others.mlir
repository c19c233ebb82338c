func.func @f(%n: index, %t: tensor<6x6xf32>, %m: memref<6xf32>, %x: f32) -> (tensor<6x6xf32>, i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %all = scf.forall (%i, %j) in (6, 6) shared_outs(%o = %t) -> (tensor<6x6xf32>) {
    %cell = tensor.extract_slice %o[%i, %j] [1, 1] [1, 1] : tensor<6x6xf32> to tensor<1x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %cell into %o[%i, %j] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<6x6xf32>
    }
  } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
  %sum = scf.parallel (%i) = (%c0) to (%c6) step (%c1) init (%x) -> f32 {
    %e = memref.load %m[%i] : memref<6xf32>
    scf.reduce(%e : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  %chosen = scf.index_switch %n -> i32
  case 3 {
    %a = arith.constant 30 : i32
    scf.yield %a : i32
  }
  case -1 {
    %a = arith.constant 10 : i32
    scf.yield %a : i32
  }
  default {
    %a = arith.constant 0 : i32
    scf.yield %a : i32
  }
  %inner = scf.execute_region -> i32 {
    cf.br ^next
  ^next:
    %a = arith.constant 7 : i32
    scf.yield %a : i32
  }
  return %all, %chosen, %inner : tensor<6x6xf32>, i32, i32
}
