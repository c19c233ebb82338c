// RUN: devscope lower %s --stage host-llvm | filecheck %s

// Rows of 9000 elements are in memory that has room for 16 tasks: no more are made, whatever divides the loops.

// CHECK: @devscope_run_tasks({{.*}}, i64 10)
// CHECK-NOT: call{{.*}} @devscope_run_tasks
func.func @main(%x: tensor<10x3x9000xf32>, %y: tensor<10x3x9000xf32>, %e: tensor<10x3x9000xf32>)
    -> tensor<10x3x9000xf32> {
  %sum = linalg.add ins(%x, %y : tensor<10x3x9000xf32>, tensor<10x3x9000xf32>)
    outs(%e : tensor<10x3x9000xf32>) -> tensor<10x3x9000xf32>
  %r = linalg.softmax dimension(2) ins(%sum : tensor<10x3x9000xf32>) outs(%e : tensor<10x3x9000xf32>)
    -> tensor<10x3x9000xf32>
  return %r : tensor<10x3x9000xf32>
}
