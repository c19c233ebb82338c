// Remarks and warnings of MLIR's passes are printed, and must be expected under --verify-diagnostics.
// RUN: devscope-opt %s -p mlir.transform-interpreter --verify-diagnostics
// RUN: devscope-opt %s -p mlir.transform-interpreter 2>&1 | filecheck %s

module attributes {transform.with_named_sequence} {
  func.func @f() {
    // CHECK: remarks.mlir:[[# @LINE + 2]]:5: remark: here it is
    // expected-remark@+1 {{here it is}}
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["func.return"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %0, "here it is" : !transform.any_op
    transform.yield
  }
}
