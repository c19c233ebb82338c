// RUN: devscope lower %s --stage host-buffers | filecheck %s --check-prefix=HOST
// RUN: devscope lower %s --stage launchers | filecheck %s --check-prefix=DEVICE
// RUN: devscope lower %s --stage host | filecheck %s --check-prefix=CALLS

#dev = #device.scope<"opencl", 0 : i64, "", "">

// Large constants become references into the constant table; small ones stay on the host; splats are fills.
func.func @main(%x: tensor<20xf32>) -> (tensor<20xf32>, tensor<20xf32>, tensor<2xf32>) {
  %large = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0,
                                 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]> : tensor<20xf32>
  %small = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = arith.addf %x, %large : tensor<20xf32>
  %1 = arith.mulf %x, %large {device.scope = #dev} : tensor<20xf32>
  return %0, %1, %small : tensor<20xf32>, tensor<20xf32>, tensor<2xf32>
}
// HOST-DAG:   memref.global "private" @devscope_constant_0 : memref<20xf32>
// HOST-DAG:   memref.global "private" constant {{.*}} : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// DEVICE:     memref.get_global @devscope_constant_0 : memref<20xf32, #opencl0>
// CALLS:      call @devscope_constant(
// CALLS-NOT:  memref.global {{.*}}devscope_constant
