// RUN: devscope lower %s --default opencl:0 --devices opencl:0=cuda:0 --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --default opencl:0 --devices opencl:0=cuda:0 --stage kernels | filecheck %s --check-prefix=KERNEL

#m_a = affine_map<(i, j, k) -> (i, k)>
#m_b = affine_map<(i, j, k) -> (k, j)>
#m_c = affine_map<(i, j, k) -> (i, j)>
#steps = {indexing_maps = [#m_a, #m_b, #m_c], iterator_types = ["parallel", "parallel", "reduction"]}

// Two layers of one size share their kernel; a third is of another size.
func.func @layers(%x: tensor<8x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>, %u: tensor<16x4xf32>)
    -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %e4 = tensor.empty() : tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.generic #steps ins(%x, %v : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<8x16xf32>
  %2 = linalg.generic #steps ins(%0, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<8x16xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = linalg.generic #steps ins(%2, %u : tensor<8x16xf32>, tensor<16x4xf32>) outs(%f4 : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}
// LAUNCH-LABEL: func.func private @layers_opencl0_0
// LAUNCH:         call @[[MATMUL:.*_generic_[0-9]+]](
// LAUNCH:         call @[[MATMUL]](
// LAUNCH-NOT:     call @[[MATMUL]](
// LAUNCH:         call @{{.*}}_generic_
// LAUNCH:         return
// KERNEL:       gpu.func @{{.*}}_generic_
// KERNEL:       gpu.func @{{.*}}_generic_
// KERNEL-NOT:   gpu.func
