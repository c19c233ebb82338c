// RUN: devscope lower %s --default opencl:0 --devices opencl:0=cuda:0 --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --default opencl:0 --devices opencl:0=cuda:0 --stage kernels | filecheck %s --check-prefix=KERNEL

#m_a = affine_map<(i, j, k) -> (i, k)>
#m_b = affine_map<(i, j, k) -> (k, j)>
#m_c = affine_map<(i, j, k) -> (i, j)>
#steps = {indexing_maps = [#m_a, #m_b, #m_c], iterator_types = ["parallel", "parallel", "reduction"]}

// A fill, a product and what follows it are one kernel, tiled 4 x 64.
func.func @layer(%x: tensor<?x16xf32>, %w: tensor<16x128xf32>) -> tensor<?x128xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
  %0 = linalg.generic #steps ins(%x, %w : tensor<?x16xf32>, tensor<16x128xf32>) outs(%f : tensor<?x128xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %way = arith.addf %p, %q : f32
    %longest = arith.maximumf %r, %way : f32
    linalg.yield %longest : f32
  } -> tensor<?x128xf32>
  %1 = math.tanh %0 : tensor<?x128xf32>
  %2 = arith.addf %1, %0 : tensor<?x128xf32>
  return %2 : tensor<?x128xf32>
}
// LAUNCH-LABEL: func.func private @layer_opencl0_0
// LAUNCH:         memref.alloc
// LAUNCH:         call @layer_opencl0_0_generic_0
// LAUNCH-NOT:     call @layer_opencl0_0_
// LAUNCH:         return
// KERNEL-LABEL: gpu.func @layer_opencl0_0_generic_0_kernel
// KERNEL:         arith.cmpi ult
// KERNEL:         memref.store
// KERNEL:         scf.for
// KERNEL:           memref.load
// KERNEL:         math.tanh
// KERNEL:         arith.addf

// A short reduction over everything has no parallel loop: a grid of one work-item.
func.func @sum(%x: tensor<4x8xf32>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
                       iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// Strided copies are kernels; whole buffers are copied by the driver.
func.func @slices(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %1 = tensor.insert_slice %0 into %x[0, 4] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// LAUNCH-LABEL: func.func private @slices_opencl0_0(
// LAUNCH:         memref.copy {{.*}} : memref<8x8xf32, #opencl0> to memref<8x8xf32, #opencl0>
// LAUNCH:         memref.subview
// LAUNCH:         call @slices_opencl0_0_copy

// Grids: 4 x 64 work-items where sizes are dynamic, one where there is no parallel loop.
// LAUNCH:       gpu.launch_func  @layer_opencl0_0_generic_0_kernel::
// LAUNCH-SAME:    threads in (%c64, %c4, %c1)
// LAUNCH:       gpu.launch_func  @sum_opencl0_0_generic_{{[0-9]+}}_kernel::
// LAUNCH-SAME:    blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
