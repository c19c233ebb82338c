// RUN: devscope lower %s --stage split | filecheck %s --check-prefix=WHOLE
// RUN: devscope lower %s --stage split --chunks 1 | filecheck %s --check-prefix=WHOLE
// RUN: devscope lower %s --stage split --chunks 8 | filecheck %s
// RUN: devscope run %s --no-cache --chunks 8 --random 0 --check | filecheck %s --check-prefix=CALL

// 512 KiB in and out together: two chunks of 256 KiB, the least size.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %0 = math.tanh %x {device.scope = #dev} : tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
// WHOLE-NOT: scf.for
// WHOLE:     func.func private @main_opencl0_0({{.*}}: tensor<64x1024xf32>
// CHECK:     scf.for
// CHECK:     func.func private @main_opencl0_0_chunk({{.*}}: tensor<32x1024xf32>
// CALL: check
