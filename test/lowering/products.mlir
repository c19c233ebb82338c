// RUN: devscope lower %s --stage host-llvm | filecheck %s

// Products of floats go by vectors, and what is not finite is computed again in order.

// CHECK: fmul <[[N:[0-9]+]] x float>
// CHECK: llvm.vector.reduce.fmul
// CHECK: fcmp uno float
// CHECK: br i1
// CHECK: fmul float
func.func @product(%x: tensor<7x4096xf32>, %start: tensor<7xf32>) -> tensor<7xf32> {
  %product = linalg.reduce ins(%x : tensor<7x4096xf32>) outs(%start : tensor<7xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %c = arith.mulf %b, %a : f32
      linalg.yield %c : f32
    }
  return %product : tensor<7xf32>
}
