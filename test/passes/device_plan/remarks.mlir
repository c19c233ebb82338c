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

// What is read back is the data, even where a loop captures it.
func.func @read(%x: tensor<4xf32> {device.scope = #dev}) -> f32 {
  %start = arith.constant 0 : index
  %step = arith.constant 1 : index
  %stop = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{'scf.parallel' reads %x back from opencl:0}}
  %sum = scf.parallel (%i) = (%start) to (%stop) step (%step) init (%zero) -> f32 {
    %v = tensor.extract %x[%i] : tensor<4xf32>
    scf.reduce(%v : f32) {
    ^bb0(%l: f32, %r: f32):
      %a = arith.addf %l, %r : f32
      scf.reduce.return %a : f32
    }
  } {device.scope = #dev}
  return %sum : f32
}
