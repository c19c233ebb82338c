// RUN: devscope-opt %s | filecheck %s
// RUN: devscope-opt %s --print-op-generic | devscope-opt | filecheck %s
// RUN: devscope-opt %s -p dce | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %flag: i1) -> tensor<4xf32> {
  // CHECK: %[[F:.*]] = constant @relu : (tensor<4xf32>) -> tensor<4xf32>
  %f = constant @relu : (tensor<4xf32>) -> tensor<4xf32>
  %g = func.constant @tanh : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[H:.*]] = arith.select
  %h = arith.select %flag, %f, %g : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: call_indirect %[[H]](%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
  %y = call_indirect %h(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @relu(tensor<4xf32>) -> tensor<4xf32>
func.func private @tanh(tensor<4xf32>) -> tensor<4xf32>
