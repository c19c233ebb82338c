// What passes that know nothing of scopes do to a plan (docs/planner.md, "After planning").

// RUN: devscope-opt %s -p 'device-plan,mlir.cse,device-verify' | filecheck %s --check-prefix=KEPT
// RUN: devscope-opt %s -p 'device-plan,cse,device-verify' | filecheck %s --check-prefix=KEPT
// RUN: devscope-opt %s -p 'device-plan,canonicalize,device-verify' | filecheck %s --check-prefix=KEPT
// RUN: devscope-opt %s -p 'device-plan,device-canonicalize,device-verify' | filecheck %s --check-prefix=KEPT
// RUN: devscope-opt %s -p 'device-plan,symbol-dce,device-verify' | filecheck %s --check-prefix=KEPT
// RUN: devscope-opt %s -p 'device-plan,mlir.linalg-generalize-named-ops,device-plan,device-verify' | filecheck %s --check-prefix=GENERIC

// MLIR merges equal constants, whatever attributes they carry; generalisation keeps attributes, elementwise
// conversion and constant propagation do not. device-verify says where, device-plan repairs what is left.
// RUN: not devscope-opt %s -p 'device-plan,mlir.canonicalize,device-verify' 2>&1 | filecheck %s --check-prefix=MERGED
// RUN: not devscope-opt %s -p 'device-plan,mlir.sccp,device-verify' 2>&1 | filecheck %s --check-prefix=MERGED
// RUN: not devscope-opt %s -p 'device-plan,mlir.convert-elementwise-to-linalg,device-verify' 2>&1 | filecheck %s --check-prefix=LOST
// RUN: devscope-opt %s -p 'device-plan,mlir.canonicalize,device-plan,device-verify' | filecheck %s --check-prefix=REPAIRED

#dev = #device.scope<"opencl", 0 : i64, "", "">

// KEPT-LABEL: func.func @main
// KEPT-DAG:     arith.constant dense<7>
// KEPT-DAG:     arith.constant {device.scope = #opencl0} dense<7>
// KEPT:         arith.addi %arg0, %{{.*}} {device.scope = #opencl0}
// KEPT:         arith.addi %arg1, %{{.*}} : tensor
// KEPT:         linalg.add {device.scope = #opencl0}
// GENERIC:      linalg.generic {{.*}}device.scope = #opencl0

// MERGED: upstream_passes.mlir:37:8: error: operand #1 of 'arith.addi' is on cpu:0, but is used on opencl:0
// MERGED: note: device-plan keeps what still holds
// LOST: upstream_passes.mlir:37:8: error: {{.*}} 'linalg.generic', which runs on cpu:0

// REPAIRED-DAG: arith.constant dense<7>
// REPAIRED-DAG: arith.constant {device.scope = #opencl0} dense<7>
// REPAIRED:     arith.addi %arg0, %{{.*}} {device.scope = #opencl0}

func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  %o = arith.constant dense<7> : tensor<4xi32>
  %0 = arith.addi %x, %o {device.scope = #dev} : tensor<4xi32>
  %1 = arith.addi %y, %o : tensor<4xi32>
  %2 = tensor.empty() : tensor<4xi32>
  %3 = linalg.add {device.scope = #dev} ins(%0, %0 : tensor<4xi32>, tensor<4xi32>) outs(%2 : tensor<4xi32>) -> tensor<4xi32>
  return %0, %1, %3 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}
