// RUN: devscope lower %s --stage host-buffers | filecheck %s

// Both parts of a concatenation are computed where they go.
// CHECK-LABEL: func.func @joined
// CHECK:         %[[ALL:.*]] = memref.alloc() {{.*}} : memref<4x48xf32>
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         return %[[ALL]]
func.func @joined(%a: tensor<4x16xf32>, %b: tensor<4x32xf32>) -> tensor<4x48xf32> {
  %0 = math.exp %a : tensor<4x16xf32>
  %1 = math.absf %b : tensor<4x32xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<4x16xf32>, tensor<4x32xf32>) -> tensor<4x48xf32>
  return %2 : tensor<4x48xf32>
}

// What is needed elsewhere, too, is a buffer of its own.
// CHECK-LABEL: func.func @used
// CHECK:         memref.copy
func.func @used(%a: tensor<4x16xf32>, %b: tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4x48xf32>) {
  %0 = math.exp %a : tensor<4x16xf32>
  %1 = math.absf %b : tensor<4x32xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<4x16xf32>, tensor<4x32xf32>) -> tensor<4x48xf32>
  return %1, %2 : tensor<4x32xf32>, tensor<4x48xf32>
}

// Rows of three elements are computed several at once.
// CHECK-LABEL: func.func @short
// CHECK:         memref.copy
func.func @short(%a: tensor<40x3xf32>, %b: tensor<40x3xf32>) -> tensor<40x6xf32> {
  %0 = math.exp %a : tensor<40x3xf32>
  %1 = math.absf %b : tensor<40x3xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<40x3xf32>, tensor<40x3xf32>) -> tensor<40x6xf32>
  return %2 : tensor<40x6xf32>
}
