// RUN: devscope lower %s --stage host-buffers | filecheck %s

// Steps over the same rows become one function; what is only used in between is a row for each task.
// CHECK-LABEL: func.func @softmax
// CHECK-NOT: {{ linalg[.](generic|fill)}}
// CHECK: call @devscope_rows_0(
// CHECK-NOT: {{ linalg[.](generic|fill)}}
// CHECK: return
func.func @softmax(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Those over columns stay as they are: rows do not know the sums of columns.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: call @devscope_rows
// CHECK: return
func.func @columns(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.softmax dimension(0) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Parts of a concatenation are parts of rows of the whole.
// CHECK-LABEL: func.func @joined
// CHECK:         call @devscope_rows_{{.}}(%{{.*}}, %{{.*}}, %{{.*}}) {devscope.writes = array<i64: 2>}
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @joined(%x: tensor<40x20x30xf32>, %y: tensor<40x9x30xf32>) -> tensor<40x29x30xf32> {
  %0 = tensor.concat dim(1) %x, %y : (tensor<40x20x30xf32>, tensor<40x9x30xf32>) -> tensor<40x29x30xf32>
  return %0 : tensor<40x29x30xf32>
}
