// RUN: devscope lower %s --stage host-buffers | filecheck %s

// Rows that fill no vector: 16 of them at once, then those that are left.
// CHECK-LABEL: func.func @short
// CHECK-DAG:   memref.subview %{{.*}}[2048, 0] [2, 7]
// CHECK-DAG:   memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [128, 16, 7]
// CHECK:       outs(%{{.*}} : memref<16x7xf32>)
func.func @short(%x: tensor<2050x7xf32>, %init: tensor<7xf32>) -> tensor<7xf32> {
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<2050x7xf32>) outs(%init : tensor<7xf32>) dimensions = [0]
  return %sum : tensor<7xf32>
}

// CHECK-LABEL: func.func @long
// CHECK-NOT:   memref.reinterpret_cast
func.func @long(%x: tensor<2050x16xf32>, %init: tensor<16xf32>) -> tensor<16xf32> {
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<2050x16xf32>) outs(%init : tensor<16xf32>) dimensions = [0]
  return %sum : tensor<16xf32>
}
