// RUN: devscope lower %s --stage host-llvm | filecheck %s

// LLVM's vectoriser finds out first whether buffers overlap: it does nothing by vectors if a result has the place of
// an operand, and gives up if there are many of them. So loops are vectors before.

// CHECK-LABEL: define {{.*}}@devscope_function_few(
// CHECK: load <[[LANES:[0-9]+]] x float>
// CHECK: store <[[LANES]] x float>
// CHECK-LABEL: define {{.*}}@devscope_function_many(
// CHECK: load <[[LANES]] x float>
// CHECK: store <[[LANES]] x float>
// CHECK-LABEL: define {{.*}}@devscope_entry_

#own = affine_map<(i) -> (i)>

func.func @few(%x0: tensor<4096xf32>, %x1: tensor<4096xf32>)
    -> (tensor<4096xf32>, tensor<4096xf32>) {
  %e = tensor.empty() : tensor<4096xf32>
  %r:2 = linalg.generic {indexing_maps = [#own, #own, #own, #own],
      iterator_types = ["parallel"]}
      ins(%x0, %x1 : tensor<4096xf32>, tensor<4096xf32>)
      outs(%e, %e : tensor<4096xf32>, tensor<4096xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o0: f32, %o1: f32):
    %r0 = arith.addf %a0, %a1 : f32
    %r1 = arith.addf %a1, %a0 : f32
    linalg.yield %r0, %r1 : f32, f32
  } -> (tensor<4096xf32>, tensor<4096xf32>)
  return %r#0, %r#1 : tensor<4096xf32>, tensor<4096xf32>
}

func.func @many(%x0: tensor<4096xf32>, %x1: tensor<4096xf32>, %x2: tensor<4096xf32>, %x3: tensor<4096xf32>, %x4: tensor<4096xf32>,
    %x5: tensor<4096xf32>, %x6: tensor<4096xf32>, %x7: tensor<4096xf32>, %x8: tensor<4096xf32>)
    -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>,
    tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %e = tensor.empty() : tensor<4096xf32>
  %r:9 = linalg.generic {indexing_maps = [#own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own, #own],
      iterator_types = ["parallel"]}
      ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8 : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>,
    tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>)
      outs(%e, %e, %e, %e, %e, %e, %e, %e, %e : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>,
    tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %o0: f32, %o1: f32, %o2: f32, %o3: f32, %o4: f32, %o5: f32, %o6: f32, %o7: f32, %o8: f32):
    %r0 = arith.addf %a0, %a1 : f32
    %r1 = arith.addf %a1, %a2 : f32
    %r2 = arith.addf %a2, %a3 : f32
    %r3 = arith.addf %a3, %a4 : f32
    %r4 = arith.addf %a4, %a5 : f32
    %r5 = arith.addf %a5, %a6 : f32
    %r6 = arith.addf %a6, %a7 : f32
    %r7 = arith.addf %a7, %a8 : f32
    %r8 = arith.addf %a8, %a0 : f32
    linalg.yield %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8 : f32, f32, f32, f32, f32, f32, f32, f32, f32
  } -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>,
    tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8 : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>,
    tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}
