// RUN: devscope lower %s --stage host-buffers | filecheck %s
// RUN: devscope lower %s --stage schedule | filecheck %s --check-prefix=ROWS

// What is copied and the border around it are done row by row.
// CHECK-LABEL: func.func @padded
// CHECK-NOT:     linalg
// CHECK:         call @devscope_rows_0(
// CHECK-NOT:     linalg
// CHECK:         return
// ROWS: borders.mlir:[[# @LINE + 4]]:{{.*}}: memref.copy, rows ?, columns 120, f32: loops over rows
// ROWS-COUNT-3: linalg.fill, rows ?, {{.*}}: in the loops of
func.func @padded(%x: tensor<?x16x10x12xf32>) -> tensor<?x16x12x13xf32> {
  %c = arith.constant 7.0 : f32
  %0 = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %d: index, %e: index):
    tensor.yield %c : f32
  } : tensor<?x16x10x12xf32> to tensor<?x16x12x13xf32>
  return %0 : tensor<?x16x12x13xf32>
}

// Along an axis of unknown size: what is behind the part begins where that ends.
// CHECK-LABEL: func.func @unknown
// CHECK:         %[[ALL:.*]] = memref.alloc(%[[WIDE:.*]])
// CHECK:         memref.copy
// CHECK:         %[[END:.*]] = arith.addi %[[SIZE:.*]], %{{.*}} : index
// CHECK:         %[[REST:.*]] = arith.subi %[[WIDE]], %[[END]] : index
// CHECK:         %[[FRONT:.*]] = memref.subview %[[ALL]][0] [3] [1]
// CHECK:         linalg.fill {{.*}} outs(%[[FRONT]]
// CHECK:         %[[BACK:.*]] = memref.subview %[[ALL]][%[[END]]] [%[[REST]]] [1]
// CHECK:         linalg.fill {{.*}} outs(%[[BACK]]
// CHECK-NOT:     linalg
// CHECK:         return %[[ALL]]
func.func @unknown(%x: tensor<?xf32>, %high: index) -> tensor<?xf32> {
  %c = arith.constant 7.0 : f32
  %0 = tensor.pad %x low[3] high[%high] {
  ^bb0(%a: index):
    tensor.yield %c : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %0 : tensor<?xf32>
}

// What is between elements is not around them.
// CHECK-LABEL: func.func @between
// CHECK:         linalg.fill {{.*}} outs(%[[ALL:.*]] : memref<40xf32>)
// CHECK:         memref.copy
// CHECK:         return %[[ALL]]
func.func @between(%x: tensor<20xf32>) -> tensor<40xf32> {
  %c = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %0 = linalg.fill ins(%c : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %1 = tensor.insert_slice %x into %0[0] [20] [2] : tensor<20xf32> into tensor<40xf32>
  return %1 : tensor<40xf32>
}

// What is copied from within the buffer is what it was filled with.
// CHECK-LABEL: func.func @within
// CHECK:         call @devscope_rows_1(%{{.*}}, %[[ALL:.*]]) {devscope.writes = array<i64: 1>} : (f32, memref<8x30xf32>)
// CHECK:         memref.load %[[ALL]]
// ROWS: linalg.fill, rows 8, columns 30, f32: loops over rows
// ROWS: memref.copy, rows 8, columns 10, f32: in the loops of
func.func @within(%c: f32, %i: index) -> f32 {
  %all = memref.alloc() : memref<8x30xf32>
  linalg.fill ins(%c : f32) outs(%all : memref<8x30xf32>)
  %from = memref.subview %all[0, 0] [8, 10] [1, 1] : memref<8x30xf32> to memref<8x10xf32, strided<[30, 1]>>
  %to = memref.subview %all[0, 15] [8, 10] [1, 1] : memref<8x30xf32> to memref<8x10xf32, strided<[30, 1], offset: 15>>
  memref.copy %from, %to : memref<8x10xf32, strided<[30, 1]>> to memref<8x10xf32, strided<[30, 1], offset: 15>>
  %one = memref.load %all[%i, %i] : memref<8x30xf32>
  memref.dealloc %all : memref<8x30xf32>
  return %one : f32
}
