// RUN: devscope lower %s --stage schedule | filecheck %s

// Pooling over whole images is a reduction, in which what is computed of each element is computed, too.
// CHECK:      linalg.fill, 8 x 16, f32: loops
// CHECK-NEXT: linalg.generic, 8 x 16 x 8 x 8, f32: loops
func.func @whole(%x: tensor<8x16x8x8xf32>) -> tensor<8x16x1x1xf32> {
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x16x1x1xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<8x16x1x1xf32>) -> tensor<8x16x1x1xf32>
  %y = math.tanh %x : tensor<8x16x8x8xf32>
  %0 = linalg.pooling_nchw_max ins(%y, %window : tensor<8x16x8x8xf32>, tensor<8x8xf32>)
    outs(%f : tensor<8x16x1x1xf32>) -> tensor<8x16x1x1xf32>
  return %0 : tensor<8x16x1x1xf32>
}

// Rows of which nobody knows how many there are do not become longer ones, which may be one.
// CHECK:      linalg.fill, ? x 512, f32: loops
// CHECK-NEXT: linalg.reduce, ? x 512 x 508, f32: loops
// CHECK:      linalg.fill, ?, f32: loops
// CHECK-NEXT: linalg.reduce, ? x 512, f32: loops
func.func @long(%x: tensor<?x512x508xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x512x508xf32>
  %e = tensor.empty(%n) : tensor<?x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<?x512x508xf32>) outs(%f : tensor<?x512xf32>) dimensions = [2]
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.reduce {arith.maximumf} ins(%0 : tensor<?x512xf32>) outs(%f1 : tensor<?xf32>) dimensions = [1]
  return %1 : tensor<?xf32>
}
