// RUN: devscope lower %s --stage schedule | filecheck %s

// Copies between different orders of elements get a kernel, whatever the operation is called. Axes that are one in
// memory are one loop; what has fewer elements each way than a tile stays loops.

// CHECK: transposes.mlir:13:8: linalg.generic, b 1, m 200, n 300, f32: transpose with rows
// CHECK: transposes.mlir:14:8: linalg.generic, b ?, m 6144, n ?, f16: transpose with rows
// CHECK: transposes.mlir:15:8: linalg.generic, 100 x 4, f64: loops
func.func @main(%x: tensor<200x300xf32>, %y: tensor<?x64x96x?xf16>, %z: tensor<4x100xf64>,
                %ex: tensor<300x200xf32>, %ey: tensor<?x?x64x96xf16>, %ez: tensor<100x4xf64>)
    -> (tensor<300x200xf32>, tensor<?x?x64x96xf16>, tensor<100x4xf64>)
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %a = linalg.transpose ins(%x : tensor<200x300xf32>) outs(%ex : tensor<300x200xf32>) permutation = [1, 0]
  %b = linalg.transpose ins(%y : tensor<?x64x96x?xf16>) outs(%ey : tensor<?x?x64x96xf16>) permutation = [0, 3, 1, 2]
  %c = linalg.transpose ins(%z : tensor<4x100xf64>) outs(%ez : tensor<100x4xf64>) permutation = [1, 0]
  return %a, %b, %c : tensor<300x200xf32>, tensor<?x?x64x96xf16>, tensor<100x4xf64>
}

// A quarter of a turn is one, too, of which the result is written backwards.

// CHECK: transposes.mlir:24:8: linalg.map, b 1, m 33, n 70, f32: transpose with rows
func.func @turned(%x: tensor<33x70xf32>) -> tensor<70x33xf32>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %last = arith.constant 69 : index
    %y = arith.subi %last, %i : index
    %element = tensor.extract %x[%j, %y] : tensor<33x70xf32>
    tensor.yield %element : f32
  } : tensor<70x33xf32>
  return %r : tensor<70x33xf32>
}
