// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-plan,device-defunctionalize

// expected-error @below {{public function 'apply' takes or returns a function, and cannot be called from outside}}
// expected-note @below {{add a public function of tensors and scalars that calls it with a func.constant}}
func.func @apply(%f: (f32) -> f32, %x: f32) -> f32 {
  %0 = func.call_indirect %f(%x) : (f32) -> f32
  return %0 : f32
}

// -----

// expected-error @below {{'elsewhere' is defined elsewhere, and takes or returns a function}}
// expected-note @below {{give it a body, or call the functions here}}
func.func private @elsewhere() -> (() -> ())
func.func private @unused(() -> ())
func.func @main() {
  %f = call @elsewhere() : () -> (() -> ())
  func.call_indirect %f() : () -> ()
  return
}

// -----

func.func private @f() {
  return
}
func.func @main() {
  %f = func.constant @f : () -> ()
  // expected-error @below {{'my.tuple' has a function value, and nobody knows which functions it calls or returns}}
  // expected-note @below {{scf, cf, arith.select, calls and returns may pass functions on}}
  %t = "my.tuple"(%f) : (() -> ()) -> i32
  return
}

// -----

func.func private @never() -> (() -> ()) {
  %f = call @never() : () -> (() -> ())
  return %f : () -> ()
}
func.func @main() {
  %f = call @never() : () -> (() -> ())
  // expected-error @below {{no function ever reaches this call}}
  func.call_indirect %f() : () -> ()
  return
}
