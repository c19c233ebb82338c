// RUN: devscope lower %s --stage memory | filecheck %s

// What an index of a row has to hold is asserted once for the row, in front of the copies of its elements.
// CHECK-LABEL: func.func @devscope_function_rows
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : memref<4x?xi64>) {
// CHECK-NEXT:    ^bb0(%[[AT:.*]]: i64):
// CHECK-NEXT:      %[[ROW:.*]] = linalg.index 1
// CHECK-NEXT:      %[[INDEX:.*]] = arith.index_cast %[[AT]]
// CHECK-NEXT:      %[[FIRST:.*]] = arith.addi %[[INDEX]], %[[ROW]]
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi ult, %[[FIRST]]
// CHECK-NEXT:      cf.assert %[[INSIDE]]
// CHECK-NEXT:      linalg.yield
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-NOT:       cf.assert
// CHECK:           linalg.yield
func.func @rows(%table: tensor<100x768xf32>, %at: tensor<4x?xi64>, %e: tensor<4x768x?xf32>) -> tensor<4x768x?xf32> {
  %c100 = arith.constant 100 : index
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%at : tensor<4x?xi64>) outs(%e : tensor<4x768x?xf32>) {
  ^bb0(%i: i64, %old: f32):
    %column = linalg.index 1 : index
    %number = linalg.index 2 : index
    %index = arith.index_cast %i : i64 to index
    %row = arith.addi %index, %number : index
    %inside = arith.cmpi ult, %row, %c100 : index
    cf.assert %inside, "row"
    %v = tensor.extract %table[%row, %column] : tensor<100x768xf32>
    linalg.yield %v : f32
  } -> tensor<4x768x?xf32>
  return %r : tensor<4x768x?xf32>
}

// Rows of unknown length may have no elements, of which nothing is asserted.
// CHECK-LABEL: func.func @devscope_function_unknown_rows
// CHECK:         %[[NONE:.*]] = arith.cmpi eq
// CHECK:         linalg.generic
// CHECK:           %[[HOLDS:.*]] = arith.ori %{{.*}}, %[[NONE]]
// CHECK-NEXT:      cf.assert %[[HOLDS]]
func.func @unknown_rows(%table: tensor<100x?xf32>, %at: tensor<8xi64>, %e: tensor<8x?xf32>) -> tensor<8x?xf32> {
  %c100 = arith.constant 100 : i64
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%at : tensor<8xi64>) outs(%e : tensor<8x?xf32>) {
  ^bb0(%i: i64, %old: f32):
    %column = linalg.index 1 : index
    %inside = arith.cmpi ult, %i, %c100 : i64
    cf.assert %inside, "row"
    %row = arith.index_cast %i : i64 to index
    %v = tensor.extract %table[%row, %column] : tensor<100x?xf32>
    linalg.yield %v : f32
  } -> tensor<8x?xf32>
  return %r : tensor<8x?xf32>
}

// Where each element decides by itself, it asserts where it is.
// CHECK-LABEL: func.func @devscope_function_elements
// CHECK-COUNT-1: linalg.generic
// CHECK:           cf.assert
// CHECK:           arith.divf
func.func @elements(%x: tensor<64xf32>, %e: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %old: f32):
    %is = arith.cmpf une, %in, %zero : f32
    cf.assert %is, "zero"
    %v = arith.divf %one, %in : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// Of many elements, it is found first whether all have what they are to have.
// CHECK-LABEL: func.func @devscope_function_many
// CHECK:         linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%{{.*}} : memref<?xi64>) outs(%[[ALL:.*]] : memref<i8>) {
// CHECK-NEXT:    ^bb0(%[[AT:.*]]: i64, %[[OLD:.*]]: i8):
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]]
// CHECK-NEXT:      %[[ONE:.*]] = arith.extsi %[[INSIDE]]
// CHECK-NEXT:      %[[NEW:.*]] = arith.andi %[[OLD]], %[[ONE]]
// CHECK-NEXT:      linalg.yield %[[NEW]]
// CHECK:         %[[FOUND:.*]] = memref.load %[[ALL]][]
// CHECK:         %[[HOLD:.*]] = arith.cmpi ne, %[[FOUND]]
// CHECK-NEXT:    cf.assert %[[HOLD]], "place"
// CHECK-NEXT:    linalg.generic {{.*}}iterator_types = ["parallel"]}
// CHECK-NOT:       cf.assert
// CHECK:           linalg.yield
func.func @many(%table: tensor<100xf32>, %at: tensor<?xi64>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %c100 = arith.constant 100 : i64
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%at : tensor<?xi64>) outs(%e : tensor<?xf32>) {
  ^bb0(%i: i64, %old: f32):
    %inside = arith.cmpi ult, %i, %c100 : i64
    cf.assert %inside, "place"
    %place = arith.index_cast %i : i64 to index
    %v = tensor.extract %table[%place] : tensor<100xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
