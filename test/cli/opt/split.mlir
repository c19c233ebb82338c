// Every part is its own module: symbols and aliases may come again, and locations count lines of the whole file.
// RUN: devscope-opt %s --split-input-file --print-debuginfo --mlir-print-op-generic | filecheck %s
// RUN: not devscope-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE

// WHOLE: split.mlir:[[# @LINE + 10]]:{{[0-9]+}}: error: redefinition of symbol named 'f'

// CHECK: sym_name = "f"
// CHECK: split.mlir":[[# @LINE + 1]]:1)
func.func @f() {
  return
}
// -----
// CHECK: {{^}}// -----{{$}}
// CHECK: split.mlir":[[# @LINE + 1]]:1)
func.func @f() {
  return
}

// A marker in mid-line or with further text is no marker: // -----
// -----// as in the dumps of --print-ir-after-all
// CHECK-NOT: {{^}}// -----{{$}}
