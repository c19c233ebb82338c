// Run a program, run what was saved of it, and compare with the host.

// RUN: rm -rf %t && mkdir %t
// RUN: env DEVSCOPE_CACHE_DIR=%t/cache devscope run %s --random 0 --check | filecheck %s
// RUN: env DEVSCOPE_CACHE_DIR=off devscope build %s -o %t/sum.dsx
// RUN: env DEVSCOPE_CACHE_DIR=off devscope run %t/sum.dsx --random 0 \
// RUN:     --output %t/sum.npz | filecheck %s --check-prefix=SAVED
// RUN: %python -c "import numpy; print(numpy.load(r'%t/sum.npz')['result0'].shape)" | filecheck %s --check-prefix=FILE

// CHECK: {{^}}result0: 2x3xf32{{$}}
// CHECK: {{^}}result1: f32{{$}}
// CHECK: {{^}}check: result0 agrees with the host (relative error {{.*}}, limit 1e-04){{$}}
// CHECK-NEXT: {{^}}check: result1 agrees with the host
// SAVED: {{^}}result0: 2x3xf32{{$}}
// SAVED: {{^}}result1: f32{{$}}
// FILE: (2, 3)

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<2x3xf32>, %y: f32) -> (tensor<2x3xf32>, f32) {
  %c1 = arith.constant 1 : index
  %0 = math.exp %x {device.scope = #dev} : tensor<2x3xf32>
  %1 = tensor.extract %0[%c1, %c1] : tensor<2x3xf32>
  %2 = arith.addf %1, %y : f32
  return %0, %2 : tensor<2x3xf32>, f32
}
