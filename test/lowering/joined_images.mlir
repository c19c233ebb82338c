// RUN: devscope lower %s --stage schedule | filecheck %s

// Two images are copied side by side: the convolution of both is a contraction that reads them as one. What follows a
// convolution is in its kernel, also in front of pooling, where windows overlap.

// CHECK:     :17:8: linalg.{{.*}}, b 1, m 32, n 784, k 64, f32: contraction with
// CHECK:     linalg.{{.*}}, f32: in the kernel of {{.*}}:17:8
// CHECK:     linalg.{{.*}}, sums 9, f32: window with
func.func @main(%x: tensor<1x32x28x28xf32>, %y: tensor<1x32x28x28xf32>, %w: tensor<32x64x1x1xf32>,
                %b: tensor<32xf32>) -> tensor<1x32x13x13xf32>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %zeros = stablehlo.constant dense<0.0> : tensor<1x32x28x28xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.maximum %y, %zeros : tensor<1x32x28x28xf32>
  %1 = stablehlo.concatenate %x, %0, dim = 1
    : (tensor<1x32x28x28xf32>, tensor<1x32x28x28xf32>) -> tensor<1x64x28x28xf32>
  %2 = stablehlo.convolution(%1, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x64x28x28xf32>, tensor<32x64x1x1xf32>) -> tensor<1x32x28x28xf32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<32xf32>) -> tensor<1x32x28x28xf32>
  %4 = stablehlo.add %2, %3 : tensor<1x32x28x28xf32>
  %5 = stablehlo.maximum %4, %zeros : tensor<1x32x28x28xf32>
  %6 = "stablehlo.reduce_window"(%5, %least) <{window_dimensions = array<i64: 1, 1, 3, 3>,
      window_strides = array<i64: 1, 1, 2, 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<1x32x28x28xf32>, tensor<f32>) -> tensor<1x32x13x13xf32>
  return %6 : tensor<1x32x13x13xf32>
}
