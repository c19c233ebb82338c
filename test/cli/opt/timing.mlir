// RUN: devscope-opt %s -p 'mlir.cse,xdsl.dce,mlir.canonicalize' --timing 2>&1 > %t.out | filecheck %s
// RUN: devscope-opt %s -p 'mlir.cse,xdsl.dce,mlir.canonicalize' > %t.plain
// RUN: diff %t.out %t.plain

// CHECK:      seconds share name
// CHECK:      {{[0-9.]+ +[0-9.]+%}} (parse)
// CHECK:      {{[0-9.]+ +[0-9.]+%}} cse
// CHECK:      {{[0-9.]+ +[0-9.]+%}} (MLIR to xDSL)
// CHECK:      {{[0-9.]+ +[0-9.]+%}} dce
// CHECK:      {{[0-9.]+ +[0-9.]+%}} (xDSL to MLIR)
// CHECK:      {{[0-9.]+ +[0-9.]+%}} canonicalize
// CHECK:      {{[0-9.]+ +[0-9.]+%}} (print)
// CHECK:      {{[0-9.]+ +}}100.0% total
func.func @f(%a: i32) -> i32 {
  return %a : i32
}
