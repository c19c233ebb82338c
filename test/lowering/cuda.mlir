// RUN: devscope lower %s --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --stage kernels | filecheck %s --check-prefix=KERNEL
// RUN: devscope build %s -o %t.dsx
// RUN: strings %t.dsx | filecheck %s --check-prefix=PTX

// The stages of a CUDA kernel: those of any target whose code is kernels.
#dev = #device.scope<"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_90", ptx = "8.0"}>, "">

func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<?xf32>
  return %0 : tensor<?xf32>
}
// LAUNCH:      call @main_cuda0_0_generic_0(
// LAUNCH:      gpu.launch_func  @main_cuda0_0_generic_0_kernel::@main_cuda0_0_generic_0_kernel
// LAUNCH-SAME:   threads in (%c256
// KERNEL:      gpu.func @main_cuda0_0_generic_0_kernel
// KERNEL:        math.tanh
// PTX:         .version 8.0
// PTX:         .target sm_90
// PTX:         .entry main_cuda0_0_generic_0_kernel(
// PTX:         fma.rn.f32
