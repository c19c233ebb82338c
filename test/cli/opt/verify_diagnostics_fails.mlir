// What --verify-diagnostics complains about: each part disagrees with its annotations in another way.
// RUN: not devscope-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: expected error "never" was not produced
func.func @missing() {
  return // expected-error {{never}}
}

// -----

// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 2]]:3: error: unexpected error: custom op 'arith.foo' is unknown
func.func @unexpected() {
  arith.foo
  return
}

// -----

// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 4]]:3: error: unexpected error: custom op 'arith.foo' is unknown
// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: expected error "custom op 'arith.bar'" was not produced
func.func @another_text() {
  // expected-error@+1 {{custom op 'arith.bar'}}
  arith.foo
  return
}

// -----

// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 5]]:3: error: unexpected error: custom op 'arith.foo' is unknown
// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: expected error "custom op" was not produced
func.func @another_line() {
  // expected-error@+1 {{custom op}}

  arith.foo
  return
}

// -----

// CHECK: verify_diagnostics_fails.mlir:[[# @LINE + 1]]:{{[0-9]+}}: error: malformed annotation
// expected-error@+1 custom op
func.func @malformed() {
  return
}
