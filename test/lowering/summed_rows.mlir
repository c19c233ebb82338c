// RUN: devscope lower %s --schedules %S/Inputs/summed.toml --stage host-llvm | filecheck %s

// What memory limits goes by vectors of so many bytes as the row says for it; what takes more work by others.

// CHECK: load <4 x float>
// CHECK-NOT: <8 x float>
func.func @sum(%x: tensor<7x4096xf32>, %start: tensor<7xf32>) -> tensor<7xf32> {
  %sum = linalg.reduce ins(%x : tensor<7x4096xf32>) outs(%start : tensor<7xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %c = arith.addf %b, %a : f32
      linalg.yield %c : f32
    }
  return %sum : tensor<7xf32>
}

// Extrema of narrow floats are found in f32.

// CHECK: @llvm.maximum.f32
// CHECK-NOT: @llvm.maximum.f16
func.func @greatest(%x: tensor<7x100xf16>, %start: tensor<7xf16>) -> tensor<7xf16> {
  %max = linalg.reduce ins(%x : tensor<7x100xf16>) outs(%start : tensor<7xf16>) dimensions = [1]
    (%a: f16, %b: f16) {
      %c = arith.maximumf %b, %a : f16
      linalg.yield %c : f16
    }
  return %max : tensor<7xf16>
}
