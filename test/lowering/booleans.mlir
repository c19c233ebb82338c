// RUN: devscope lower %s --stage host-llvm | filecheck %s

// Truth values are bytes in memory: LLVM vectorises loops over these only.
// CHECK-NOT: load i1
// CHECK-NOT: store i1
func.func @both(%x: tensor<?xi1>, %y: tensor<?xi1>) -> tensor<?xi1> {
  %z = arith.andi %x, %y : tensor<?xi1>
  return %z : tensor<?xi1>
}
