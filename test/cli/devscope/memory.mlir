// RUN: devscope build %s -o %t.dsx --default opencl:0 --memory | filecheck %s --check-prefix=TABLE
// RUN: devscope build %s -o %t.dsx --default opencl:0 --memory-limit opencl:0=1MiB,cpu:0=1MiB
// RUN: not devscope build %s -o %t.dsx --default opencl:0 --memory-limit opencl:0=7KiB 2>&1 | filecheck %s --check-prefix=LIMIT
// RUN: not devscope run %s --random 0 --no-cache --default opencl:0 --memory-limit opencl:0=7KiB 2>&1 | filecheck %s --check-prefix=LIMIT
// RUN: not devscope build %s -o %t.dsx --memory-limit opencl:0=much 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: not devscope build %s -o %t.dsx --memory-limit opencl:0 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not devscope build %s -o %t.dsx --memory-limit opencl:4=1MiB 2>&1 | filecheck %s --check-prefix=DEVICE

func.func @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %e = tensor.empty() : tensor<32x32xf32>
  %0 = linalg.transpose ins(%x : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) permutation = [1, 0]
  return %0 : tensor<32x32xf32>
}
// TABLE:      device    planned  lower bound  constants  state  values  unplanned
// TABLE-NEXT: cpu:0           0            0          0      0       0          1
// TABLE-NEXT: opencl:0    8,192        8,192          0      0       2          0

// LIMIT: memory.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'opencl:0' needs 8.0 KiB (8192 bytes) of memory, its limit is 7.0 KiB (7168 bytes)
// LIMIT: note: 8.0 KiB (8192 bytes) for values, 0 bytes of constants; at least 8.0 KiB (8192 bytes) of values are live at one moment
// LIMIT: note: {{.*}}memory.mlir:{{[0-9]+}}:{{[0-9]+}}: live then: 32x32xf32, 4.0 KiB (4096 bytes)
// SIZE: error: 'much' is not an amount of memory
// FORM: error: 'opencl:0' is not a limit
// DEVICE: error: the memory limits name 'opencl:4', which the program does not use
