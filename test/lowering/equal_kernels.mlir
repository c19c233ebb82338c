// RUN: devscope lower %s --default opencl:0 --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --default opencl:0 --stage kernels | filecheck %s --check-prefix=KERNEL

// Two layers of one size share their kernels; a third is of another size.
func.func @layers(%x: tensor<8x16xf32>, %v: tensor<16x16xf32>, %w: tensor<16x16xf32>, %u: tensor<16x4xf32>)
    -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %e4 = tensor.empty() : tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = math.tanh %0 : tensor<8x16xf32>
  %2 = linalg.matmul ins(%1, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = math.tanh %2 : tensor<8x16xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = linalg.matmul ins(%3, %u : tensor<8x16xf32>, tensor<16x4xf32>) outs(%f4 : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}
// LAUNCH-LABEL: func.func private @layers_opencl0_0
// LAUNCH:         call @[[MATMUL:.*_matmul_[0-9]+]](
// LAUNCH:         call @[[TANH:.*_generic_[0-9]+]](
// LAUNCH:         call @[[MATMUL]](
// LAUNCH:         call @[[TANH]](
// LAUNCH-NOT:     call @[[MATMUL]](
// LAUNCH:         call @{{.*}}_matmul_
// LAUNCH:         return
// KERNEL:       gpu.func @{{.*}}_matmul_
// KERNEL:       gpu.func @{{.*}}_generic_
// KERNEL:       gpu.func @{{.*}}_matmul_
// KERNEL-NOT:   gpu.func @{{.*}}_generic_
