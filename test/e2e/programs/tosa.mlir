// TOSA: constants, shapes and quantisation are operands; the host and the device lower their own share.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<2x8x4xf32>, %w: tensor<2x4x3xf32>, %y: tensor<1x1x3xf32>)
    -> (tensor<2x8x3xf32>, tensor<2x3xf32>, tensor<3x2x8xf32>) {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %w, %zero, %zero {device.scope = #dev}
    : (tensor<2x8x4xf32>, tensor<2x4x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x3xf32>
  %1 = tosa.add %0, %y : (tensor<2x8x3xf32>, tensor<1x1x3xf32>) -> tensor<2x8x3xf32>
  %2 = tosa.sigmoid %1 {device.scope = #dev} : (tensor<2x8x3xf32>) -> tensor<2x8x3xf32>
  %3 = tosa.reduce_sum %2 {axis = 1 : i32} : (tensor<2x8x3xf32>) -> tensor<2x1x3xf32>
  %shape = tosa.const_shape {values = dense<[2, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %4 = tosa.reshape %3, %shape : (tensor<2x1x3xf32>, !tosa.shape<2>) -> tensor<2x3xf32>
  %5 = tosa.transpose %2 {device.scope = #dev, perms = array<i32: 2, 0, 1>}
    : (tensor<2x8x3xf32>) -> tensor<3x2x8xf32>
  return %2, %4, %5 : tensor<2x8x3xf32>, tensor<2x3xf32>, tensor<3x2x8xf32>
}
func.func @pooled(%x: tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = tosa.clamp %x {device.scope = #dev, min_val = 0.0 : f32, max_val = 1.0 : f32}
    : (tensor<1x8x8x3xf32>) -> tensor<1x8x8x3xf32>
  %1 = tosa.max_pool2d %0 {device.scope = #dev, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 2, 2>} : (tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32>
  return %1 : tensor<1x4x4x3xf32>
}
