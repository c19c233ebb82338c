// Status 1, one message on stderr, nothing on stdout, and no file.

// RUN: rm -rf %t && mkdir %t
// RUN: not devscope build %s -o %t/out.dsx > %t/stdout 2> %t/stderr
// RUN: filecheck %s --input-file %t/stderr
// RUN: ls -A %t | filecheck %s --check-prefix=FILES
// RUN: %python -c "import os; assert os.path.getsize(r'%t/stdout') == 0"
// FILES: stderr
// FILES-NEXT: stdout
// FILES-NOT: {{.}}

// CHECK: errors.mlir:20:8: error: target 'opencl' cannot compute with f80{{$}}
// CHECK-NEXT: {{^}}  note: compute with f32, or place the operation on another device{{$}}
// CHECK-NOT: error

// RUN: not devscope run %t/absent.mlir 2>&1 | filecheck %s --check-prefix=ABSENT
// ABSENT: {{^}}error: cannot read '{{.*}}absent.mlir': No such file or directory{{$}}

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.extf %x {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<4xf32> to tensor<4xf80>
  %1 = arith.mulf %0, %0 : tensor<4xf80>
  %2 = arith.truncf %1 {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<4xf80> to tensor<4xf32>
  return %2 : tensor<4xf32>
}
