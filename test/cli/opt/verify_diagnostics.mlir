// RUN: devscope-opt %s --split-input-file --verify-diagnostics
// RUN: not devscope-opt %s --split-input-file 2>&1 | filecheck %s

// Without --verify-diagnostics every part is still read, and its first error reported.
// CHECK: verify_diagnostics.mlir:[[# @LINE + 3]]:3: error: unregistered operation 'arith.foo'
func.func @unknown_op_of_a_known_dialect() {
  // expected-error@+1 {{unregistered operation 'arith.foo' found in dialect ('arith')}}
  "arith.foo"() : () -> ()
  return
}

// -----

// CHECK: verify_diagnostics.mlir:[[# @LINE + 2]]:3: error: custom op 'arith.foo' is unknown
func.func @unknown_op_in_custom_form() {
  arith.foo // expected-error {{custom op 'arith.foo' is unknown}}
  return
}

// -----

// CHECK: verify_diagnostics.mlir:[[# @LINE + 2]]:8: error: 'arith.addi' op expected 2 operands, but found 1
func.func @verifier(%a: i32) {
  %0 = "arith.addi"(%a) : (i32) -> i32
  // expected-error@-1 {{op expected 2 operands, but found 1}}
  // expected-note@-2 {{see current operation}}
  return
}

// -----

func.func @unknown_op_of_the_device_dialect(%a: i32) {
  // expected-error@below {{unregistered operation 'device.nope'}}
  %0 = "device.nope"(%a) : (i32) -> i32
  return
}

// -----

func.func @wrong_attribute(%a: tensor<4xf32>) {
  %0 = "device.device_copy"(%a) {src = 1 : i32, dst = #device.scope<"cuda", 1 : i64, "", "">} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error-re@above {{expected base attribute 'device.scope' but got {{.*}}integer}}
  return
}

// -----

func.func @missing_attribute(%a: tensor<4xf32>) {
  // expected-error@+1 {{attribute "dst" is expected but not provided}}
  %0 = "device.device_copy"(%a) {src = #device.scope<"cuda", 1 : i64, "", "">} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @syntax(%a: i32) {
  // expected-error@+1 {{expected}}
  return %a : : i32
}
