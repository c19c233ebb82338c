// RUN: devscope lower %s --stage host-llvm | filecheck %s
// Only the sum of what is larger than the caches is read line by line.
// CHECK-COUNT-1: !"llvm.loop.interleave.count", i32 1
// CHECK-NOT: llvm.loop.interleave.count

func.func @main(%x: tensor<4096x4096xf32>, %y: tensor<64x4096xf32>, %a: tensor<4096xf32>, %b: tensor<64xf32>)
    -> (tensor<4096xf32>, tensor<64xf32>) {
  %large = linalg.reduce ins(%x : tensor<4096x4096xf32>) outs(%a : tensor<4096xf32>) dimensions = [1]
    (%new: f32, %sum: f32) {
      %0 = arith.addf %sum, %new : f32
      linalg.yield %0 : f32
    }
  %small = linalg.reduce ins(%y : tensor<64x4096xf32>) outs(%b : tensor<64xf32>) dimensions = [1]
    (%new: f32, %sum: f32) {
      %0 = arith.addf %sum, %new : f32
      linalg.yield %0 : f32
    }
  return %large, %small : tensor<4096xf32>, tensor<64xf32>
}
