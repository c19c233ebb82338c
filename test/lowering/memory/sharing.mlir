// RUN: devscope lower %s --devices opencl:0=cuda:0 --stage memory | filecheck %s

#m_a = affine_map<(i, j, k) -> (i, k)>
#m_b = affine_map<(i, j, k) -> (k, j)>
#m_c = affine_map<(i, j, k) -> (i, j)>
#steps = {indexing_maps = [#m_a, #m_b, #m_c], iterator_types = ["parallel", "parallel", "reduction"]}
#dev = #device.scope<"opencl", 0 : i64, "", "">
#full = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>

// On a device, an elementwise result is written over an operand that nothing uses later.
func.func @over_operand(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_over_operand(
// CHECK:         call @{{.*}}_generic_{{[0-9]}}(%[[A:[^,]*]], %[[A]]) {devscope.elementwise = array<i64: 0, 1>

// Not when it reads other elements than it writes.
func.func @turned(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.generic #steps ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i : tensor<8x8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #full], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %unused: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_turned(
// CHECK:         call @{{.*}}_generic_{{[0-9]+}}(%[[A:[^,]*]],
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK:         call @{{.*}}_generic_{{[0-9]+}}(%[[A]], %[[B]]) {devscope.writes

// Nor when its body reads elements of its own choice.
func.func @rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.generic #steps ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%i : tensor<8x8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %unused: f32):
    %j = linalg.index 1 : index
    %f = tensor.extract %0[%c0, %j] : tensor<8x8xf32>
    %t = arith.addf %a, %f : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @devscope_function_rows(
// CHECK:         call @{{.*}}_generic_{{[0-9]+}}(%[[A:[^,]*]],
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK:         call @{{.*}}_generic_{{[0-9]+}}(%[[A]], %[[B]])

// A buffer of dynamic size takes the memory of a dead one if both sizes are the same values.
func.func @dynamic(%x: tensor<?x?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  %i1 = linalg.fill ins(%one : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = linalg.matmul ins(%0, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %i2 = linalg.fill ins(%two : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = linalg.matmul ins(%1, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i2 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = tensor.extract %2[%c0, %c0] : tensor<?x?xf32>
  return %r : f32
}
// CHECK-LABEL: func.func @devscope_function_dynamic(
// CHECK-COUNT-2: memref.alloc(%{{.*}}, %{{.*}})
// CHECK-NOT:     memref.alloc({{%[a-z0-9_]+}}, %
// CHECK:         return
