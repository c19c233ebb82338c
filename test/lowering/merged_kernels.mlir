// RUN: devscope lower %s --default opencl:0 --devices opencl:0=cuda:0 --stage launchers | filecheck %s

#m_a = affine_map<(i, j, k) -> (i, k)>
#m_b = affine_map<(i, j, k) -> (k, j)>
#m_c = affine_map<(i, j, k) -> (i, j)>
#steps = {indexing_maps = [#m_a, #m_b, #m_c], iterator_types = ["parallel", "parallel", "reduction"]}

#full = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>

// Fills go along with the reduction that begins with them, here of two results.
func.func @argmax(%x: tensor<?x64xf32>, %n: index) -> tensor<?xi64> {
  %lowest = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty(%n) : tensor<?xf32>
  %ei = tensor.empty(%n) : tensor<?xi64>
  %v = linalg.fill ins(%lowest : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %p = linalg.fill ins(%none : i64) outs(%ei : tensor<?xi64>) -> tensor<?xi64>
  %r:2 = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x64xf32>) outs(%v, %p : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %value: f32, %place: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %better = arith.cmpf ogt, %a, %value : f32
    %new = arith.select %better, %a, %value : f32
    %new_place = arith.select %better, %here, %place : i64
    linalg.yield %new, %new_place : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  return %r#1 : tensor<?xi64>
}
// CHECK-LABEL: func.func private @argmax_opencl0_0(
// CHECK:         call @argmax_opencl0_0_rows_0(
// CHECK-NOT:     call @argmax_opencl0_0_
// CHECK:         return

// Work-items share rows, and go over them twice.
func.func @softmax_sum(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16x64xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %b, %a : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %o = tensor.empty() : tensor<16x64xf32>
  %r = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<16x64xf32>, tensor<16xf32>) outs(%o : tensor<16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %unused: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<16x64xf32>
  return %r : tensor<16x64xf32>
}
// CHECK-LABEL: func.func private @softmax_sum_opencl0_0(
// CHECK:         call @softmax_sum_opencl0_0_rows_
// CHECK-NOT:     call @softmax_sum_opencl0_0_
// CHECK:         return

// As large a grid, but transposed; and elements that the body chooses.
func.func @others(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m = linalg.generic #steps ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<16x16xf32>
  %t = linalg.generic {indexing_maps = [#turned, #full], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %unused: f32):
    %y = math.tanh %a : f32
    linalg.yield %y : f32
  } -> tensor<16x16xf32>
  %r = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) {
  ^bb0(%a: f32, %unused: f32):
    %j = linalg.index 1 : index
    %b = tensor.extract %t[%c0, %j] : tensor<16x16xf32>
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<16x16xf32>
  return %t, %r : tensor<16x16xf32>, tensor<16x16xf32>
}
// CHECK-LABEL: func.func private @others_opencl0_0(
// CHECK:         call @others_opencl0_0_generic_
// CHECK:         call @others_opencl0_0_generic_
// CHECK:         call @others_opencl0_0_generic_
// CHECK-NOT:     call @others_opencl0_0_
// CHECK:         return

// Two results of one input: in one kernel where memory hardly grows by it.
func.func @two(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m = linalg.generic #steps ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<16x16xf32>
  %y = math.sin %m : tensor<16x16xf32>
  %z = math.cos %x : tensor<16x16xf32>
  %s = tensor.extract_slice %z[0, 0] [16, 8] [1, 1] : tensor<16x16xf32> to tensor<16x8xf32>
  return %y, %s : tensor<16x16xf32>, tensor<16x8xf32>
}
// CHECK-LABEL: func.func private @two_opencl0_0(
// CHECK:         call @two_opencl0_0_generic_
// CHECK-NOT:     call @two_opencl0_0_generic
// CHECK:         return

// Loops of the grid need not be the first ones: columns are summed up by a work-item each, in the kernel of their fill.
func.func @columns(%x: tensor<50x300xf32>) -> tensor<300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  %s = linalg.reduce ins(%x : tensor<50x300xf32>) outs(%f : tensor<300xf32>) dimensions = [0] (%a: f32, %b: f32) {
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %w = arith.sitofp %n : i32 to f32
    %p = arith.mulf %a, %w : f32
    %t = arith.addf %b, %p : f32
    linalg.yield %t : f32
  }
  return %s : tensor<300xf32>
}
// CHECK-LABEL: func.func private @columns_opencl0_0(
// CHECK:         call @columns_opencl0_0_generic_
// CHECK-NOT:     call @columns_opencl0_0_
// CHECK:         return
// CHECK-LABEL: func.func private @columns_opencl0_0_generic_
// CHECK:         gpu.launch_func {{.*}} blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1)
