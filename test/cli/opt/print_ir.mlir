// Dumps go to stderr, the result to stdout.
// RUN: devscope-opt %s -p 'mlir(cse,func.func(canonicalize)),xdsl.dce' --print-ir-before-all --print-ir-after-all 2> %t.err > %t.out
// RUN: filecheck %s --input-file %t.err
// RUN: filecheck %s --input-file %t.out --check-prefix=OUT

// CHECK:      // -----// IR Dump Before cse //----- //
// CHECK-NEXT: #opencl0 =
// CHECK:        arith.addi
// CHECK-NEXT:   arith.addi
// CHECK:      // -----// IR Dump After cse //----- //
// CHECK:        %[[X:.*]] = arith.addi
// CHECK-NEXT:   arith.muli %[[X]], %[[X]]
// CHECK:      // -----// IR Dump Before func.func(canonicalize) //----- //
// CHECK:      // -----// IR Dump After func.func(canonicalize) //----- //
// CHECK:      // -----// IR Dump Before dce //----- //
// CHECK:      // -----// IR Dump After dce //----- //
// OUT-NOT:    IR Dump
// OUT:        func.func @f
// OUT-NOT:    IR Dump
func.func @f(%a: i32) -> i32 attributes {device.scope = #device.scope<"opencl", 0 : i64, "", "">} {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
