// One pipeline string mixes passes of devscope, xDSL and MLIR.
// RUN: devscope-opt %s -p 'mlir.linalg-generalize-named-ops,canonicalize,device-plan{default=opencl:0 arguments=host},device-verify,mlir(builtin.module(cse,func.func(linalg-fuse-elementwise-ops)))' | filecheck %s
// Names that only MLIR knows need no prefix, and passes for functions are nested on them.
// RUN: devscope-opt %s -p 'linalg-generalize-named-ops,affine-loop-unroll{unroll-factor=2},lower-vector-multi-reduction{lowering-strategy=inner-reduction}' | filecheck %s --check-prefix=BARE
// A pipeline of mlir-opt works as it stands.
// RUN: devscope-opt %s --pass-pipeline='builtin.module(func.func(linalg-generalize-named-ops,canonicalize{max-iterations=3}), cse)' | filecheck %s --check-prefix=BARE
// RUN: devscope-opt < %s -p '' - | filecheck %s --check-prefix=NONE

// CHECK-DAG:   #opencl0 = #device.scope<"opencl", 0 : i64, "", "">
// CHECK-DAG:   #cpu0 = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-LABEL: func.func @main
// CHECK:         device.device_copy {{.*}} from #cpu0 to #opencl0
// CHECK:         linalg.generic
// CHECK-SAME:      device.scope = #opencl0
// CHECK:         device.device_copy {{.*}} from #opencl0 to #cpu0
// BARE-LABEL:  func.func @main
// BARE:          linalg.generic
// BARE:          math.tanh
// NONE-LABEL:  func.func @main
// NONE:          linalg.matmul
func.func @main(%x: tensor<64x784xf32>, %w: tensor<784x128xf32>) -> tensor<64x128xf32> {
  %z = arith.constant dense<0.0> : tensor<64x128xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x784xf32>, tensor<784x128xf32>)
                     outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = math.tanh %0 : tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}
