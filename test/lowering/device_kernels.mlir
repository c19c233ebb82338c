// Contractions on an OpenCL device that is a CPU: the launcher calls a kernel of the library, whose parallel loops are
// launches of workgroups of one work-item.
// RUN: devscope lower %s --default opencl:0 --stage launchers | filecheck %s
// RUN: devscope lower %s --default opencl:0 --stage kernels | filecheck %s --check-prefix=KERNEL
// RUN: devscope lower %s --default opencl:0 --stage schedule | filecheck %s --check-prefix=ROW

// ROW: linalg.contract, b 1, m 64, n 512, k 96, f32: contraction with {{.*}} (cpu.toml, contraction {{.*}})
// Vectors of half the size take other blocks.
// ROW: linalg.contract, b 1, m 64, n 512, k 96, f32: contraction with rows 6, columns 16, {{.*}} (cpu_32.toml, contraction {{.*}})
// Too few columns for tasks: parts of the sums are a batch.
// ROW: linalg{{.*}}, b 16, m 1, n 1024, k 256, f32: narrow with

// CHECK: call @devscope_[[N:[0-9]+]]_contraction_0(
// CHECK: func.func private @devscope_[[N]]_contraction_0
// CHECK: gpu.launch_func {{.*}} blocks in (%{{[^,]*}}, %c1, %c1) threads in (%c1, %c1, %c1)

// Blocks of sums are carried as vectors that SPIR-V has; a work-item's own memory is made where the kernel begins.
// KERNEL: gpu.func @devscope_{{.*}}_kernel
// KERNEL-NEXT: memref.alloca() {{.*}} : memref<6x64xf32>
// KERNEL: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>,
// KERNEL: vector.fma {{.*}} : vector<16xf32>
// KERNEL-NOT: vector<{{[0-9]+}}x{{[0-9]+}}xf32>
#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {vector = 64 : i64}>, "">
#narrow = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {vector = 32 : i64}>, "">
func.func @main(%a: tensor<64x96xf32>, %b: tensor<96x512xf32>, %c: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %t = linalg.matmul {device.scope = #wide} ins(%a, %b : tensor<64x96xf32>, tensor<96x512xf32>) outs(%c : tensor<64x512xf32>) -> tensor<64x512xf32>
  func.return %t : tensor<64x512xf32>
}

func.func @narrow(%a: tensor<64x96xf32>, %b: tensor<96x512xf32>, %c: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %t = linalg.matmul {device.scope = #narrow} ins(%a, %b : tensor<64x96xf32>, tensor<96x512xf32>) outs(%c : tensor<64x512xf32>) -> tensor<64x512xf32>
  func.return %t : tensor<64x512xf32>
}

// Only behind the last whole block are elements of B looked at one by one.
// KERNEL: gpu.func @devscope_{{.*}}_narrow_{{.*}}_kernel
// KERNEL-NOT: scf.if {{.*}} -> (vector
// KERNEL: vector.fma
func.func @one_row(%a: tensor<1x4096xf32>, %b: tensor<4096x1024xf32>, %c: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
  %t = linalg.matmul ins(%a, %b : tensor<1x4096xf32>, tensor<4096x1024xf32>) outs(%c : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  func.return %t : tensor<1x1024xf32>
}

// Lines of a large transpose go past the caches, in pieces that SPIR-V has.
// KERNEL: gpu.func @devscope_{{.*}}_transpose_{{.*}}_kernel
// KERNEL: memref.extract_aligned_pointer_as_index
// KERNEL-COUNT-64: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true} : memref<?xf16, {{.*}}>, vector<16xf16>
func.func @turned(%x: tensor<4096x4096xf16>, %e: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %t = linalg.transpose ins(%x : tensor<4096x4096xf16>) outs(%e : tensor<4096x4096xf16>) permutation = [1, 0]
  func.return %t : tensor<4096x4096xf16>
}
