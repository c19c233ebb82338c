// What planning says about programs that it plans: warnings about copies in loops always, all else on request.

// RUN: devscope-opt %s -p 'device-plan{remarks}' --verify-diagnostics
// RUN: devscope-opt %s -p device-plan -o %t 2>&1 | filecheck %s --check-prefix=QUIET
// RUN: devscope plan %s --arguments open 2>&1 >/dev/null | filecheck %s --check-prefix=PLAN

#dev = #device.scope<"opencl", 0 : i64, "", "">

// QUIET-NOT: remark:
// QUIET: {{.*}}.mlir:[[# @LINE + 17]]:10: warning: %p is copied
// QUIET-NEXT: {{.*}}.mlir:[[# @LINE + 16]]:10: note: put 'math.tanh'
// QUIET-NEXT: {{.*}}.mlir:[[# @LINE + 18]]:10: warning: %1 is copied
// QUIET-NOT: remark:

// PLAN: {{.*}}.mlir:[[# @LINE + 12]]:10: warning: %p is copied
// PLAN-NEXT: {{^}}  note: put 'math.tanh'
func.func @iterate(%x: tensor<8x4xf32>, %count: index) -> tensor<8x4xf32> {
  %start = arith.constant 0 : index
  %step = arith.constant 1 : index
  %stop = arith.constant 100 : index
  // expected-remark@+1 {{no planning rule for 'my.norm'; all its operands and results are put on one scope}}
  %0 = "my.norm"(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = scf.for %i = %start to %stop step %step iter_args(%p = %0) -> (tensor<8x4xf32>) {
    // expected-warning@+3 {{%p is copied from cpu:0 to opencl:0 in every iteration of 'scf.for'}}
    // expected-note@+2 {{put 'math.tanh'}}
    // expected-remark@+1 {{%p is copied from cpu:0 to opencl:0 (128 bytes) for 'math.exp'}}
    %1 = math.exp %p {device.scope = #dev} : tensor<8x4xf32>
    // expected-warning-re@+2 {{%1 is copied from opencl:0 to cpu:0 in every iteration of 'scf.for' {{.*}}: 128 bytes each time, 100 times, asked for by 'math.tanh'}}
    // expected-remark@+1 {{%1 is copied from opencl:0 to cpu:0 (128 bytes) for 'math.tanh'}}
    %2 = math.tanh %1 : tensor<8x4xf32>
    scf.yield %2 : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}
