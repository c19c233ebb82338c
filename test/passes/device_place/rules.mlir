// RUN: devscope-opt %s -p 'device-place{rules=%S/Inputs/rules.toml}' | filecheck %s
// RUN: devscope plan %s --place %S/Inputs/rules.toml --table | filecheck %s --check-prefix=TABLE
// RUN: devscope plan %s --place %S/Inputs/rules.toml --explain %%sum | filecheck %s --check-prefix=WHY
// RUN: devscope run %s --place %S/Inputs/rules.toml --random 0 --check --devices opencl:1=cpu:0 | filecheck %s --check-prefix=RESULT

// First match wins; names and positions of locations are looked through; what computes nothing is left alone.

// CHECK-LABEL: func.func @main
// TABLE: linalg.matmul {{.*}} opencl:0 {{.*}}op 'matmul', flops >= 1,000
// TABLE: math.exp {{.*}} opencl:1 {{.*}}location 'encoder'
// TABLE: math.tanh {{.*}} opencl:1 {{.*}}location 'encoder'
// TABLE: arith.addf {{.*}} cpu:0 {{.*}}: the default
// TABLE: linalg.matmul {{.*}} cpu:0 {{.*}}: the default
// WHY: %sum in @main ({{.*}}rules.mlir:[[#]]:10) is on cpu:0
// WHY-NEXT: no demand reaches it: rule 5 of rules.toml: the default, cpu:0
// RESULT: check: result1 agrees
func.func @main(%a: tensor<16x16xf32>, %b: tensor<2x2xf32>) -> (tensor<16x16xf32>, tensor<2x2xf32>) {
  // CHECK: tensor.empty() : tensor<16x16xf32>
  // CHECK-NEXT: arith.constant
  // CHECK-NEXT: linalg.fill ins
  %e = tensor.empty() : tensor<16x16xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: linalg.matmul {{.*}}op 'matmul', flops >= 1,000{{.*}}#opencl0
  %0 = linalg.matmul ins(%a, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK: math.exp {{.*}}location 'encoder'{{.*}}#opencl1
  %1 = math.exp %0 : tensor<16x16xf32> loc("encoder.layer.0")
  // CHECK: math.tanh {{.*}}location 'encoder'{{.*}}#opencl1
  %2 = math.tanh %1 : tensor<16x16xf32> loc(callsite(fused["x", "jit(f)/jvp(encoder)/tanh"] at "y"("file.py":3:1)))
  // CHECK: arith.addf %{{[0-9]+}}, %{{[0-9]+}} : tensor<16x16xf32>
  %sum = arith.addf %2, %1 : tensor<16x16xf32>
  // CHECK: linalg.matmul ins
  %e2 = tensor.empty() : tensor<2x2xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x2xf32>) -> tensor<2x2xf32>
  %m = linalg.matmul ins(%b, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f2 : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %sum, %m : tensor<16x16xf32>, tensor<2x2xf32>
}
