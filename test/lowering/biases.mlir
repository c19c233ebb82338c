// RUN: devscope lower %s --stage schedule | filecheck %s

// A bias that a convolution or a product begins with is added behind it, in its kernel, with what follows.
// CHECK:      biases.mlir:16:8: linalg.conv_2d_nchw_fchw, {{.*}}: convolution with
// CHECK-NEXT: biases.mlir:18:8: linalg.generic, {{.*}}: in the kernel of {{.*}}biases.mlir:16:8
// CHECK:      biases.mlir:28:8: linalg.{{.*}}, b 1, m 64, n 40, k 96, f32: contraction with
// CHECK-NEXT: biases.mlir:30:8: linalg.generic, {{.*}}: in the kernel of {{.*}}biases.mlir:28:8
// CHECK-NOT:  loops
func.func @convolution(%x: tensor<2x8x12x12xf32>, %w: tensor<16x8x3x3xf32>, %b: tensor<16xf32>)
    -> tensor<2x16x10x10xf32>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %e = tensor.empty() : tensor<2x16x10x10xf32>
  %begin = linalg.broadcast ins(%b : tensor<16xf32>) outs(%e : tensor<2x16x10x10xf32>) dimensions = [0, 2, 3]
  %zero = arith.constant dense<0.0> : tensor<2x16x10x10xf32>

  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x8x12x12xf32>, tensor<16x8x3x3xf32>)
    outs(%begin : tensor<2x16x10x10xf32>) -> tensor<2x16x10x10xf32>
  %1 = arith.maximumf %0, %zero : tensor<2x16x10x10xf32>
  return %1 : tensor<2x16x10x10xf32>
}

func.func @product(%x: tensor<64x96xf32>, %w: tensor<96x40xf32>, %b: tensor<40xf32>) -> tensor<64x40xf32>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %e = tensor.empty() : tensor<64x40xf32>
  %begin = linalg.broadcast ins(%b : tensor<40xf32>) outs(%e : tensor<64x40xf32>) dimensions = [0]
  %zero = arith.constant dense<0.0> : tensor<64x40xf32>

  %0 = linalg.matmul ins(%x, %w : tensor<64x96xf32>, tensor<96x40xf32>)
    outs(%begin : tensor<64x40xf32>) -> tensor<64x40xf32>
  %1 = arith.maximumf %0, %zero : tensor<64x40xf32>
  return %1 : tensor<64x40xf32>
}
