// RUN: devscope lower %s --stage host-buffers | filecheck %s

// One comparison for what is said twice, at the begin of the function and in front of the loop.
// CHECK-LABEL: func.func @once(
// CHECK:         %[[X:.*]] = memref.dim %arg0
// CHECK:         %[[Y:.*]] = memref.dim %arg1
// CHECK:         %[[LESS:.*]] = arith.subi %[[X]], %[[Y]] : index
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[LESS]], %c0 : index
// CHECK:         %[[NEVER:.*]] = arith.cmpi sle, %arg2,
// CHECK:         %[[HOLDS:.*]] = arith.ori %[[SAME]], %[[NEVER]] : i1
// CHECK:         cf.assert %[[HOLDS]], "arguments do not fit each other: dimension 0 of argument 0 'x' is {0}, dimension 0 of argument 1 'y' is {1} (in 'arith.addf')"
// CHECK-NOT:     cf.assert
// CHECK:         scf.for
// CHECK-NOT:     cf.assert
// CHECK:         return
func.func @once(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %0 = arith.addf %x, %y : tensor<?xf32>
    %1 = arith.mulf %0, %y : tensor<?xf32>
    %2 = arith.addf %1, %x : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// Shapes that are made of each other agree.
// CHECK-LABEL: func.func @known(
// CHECK-NOT:     cf.assert
// CHECK:         return
func.func @known(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %0 = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = arith.addf %0, %x : tensor<?x8xf32>
  %s = tensor.extract_slice %1[0, 2] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %p = tensor.insert_slice %s into %x[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x8xf32>
  return %p : tensor<?x8xf32>
}

// Canonicalisation casts what the producer of a cast value reads: that is asserted where it is read.
// CHECK-LABEL: func.func @moved(
// CHECK:         memref.reshape
// CHECK:         cf.assert {{.*}} dimension 0 of the result is 1 (in 'tensor.cast')
// CHECK:         memref.copy
// CHECK:         cf.assert {{.*}} "good"
func.func @moved(%x: tensor<?x3xf32>, %n: index) -> tensor<1x?xf32> {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %m = arith.divsi %n, %c3 : index
  %shape = tensor.from_elements %n, %m : tensor<2xindex>
  %r = tensor.reshape %x(%shape) : (tensor<?x3xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %d = tensor.dim %r, %c0 : tensor<?x?xf32>
  %d1 = tensor.dim %r, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%d, %d1) : tensor<?x?xf32>
  %y = linalg.exp ins(%r : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %good = arith.cmpi ne, %n, %c3 : index
  cf.assert %good, "good"
  %c = tensor.cast %y : tensor<?x?xf32> to tensor<1x?xf32>
  return %c : tensor<1x?xf32>
}
