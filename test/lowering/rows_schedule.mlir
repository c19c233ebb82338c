// RUN: devscope lower %s --stage schedule | filecheck %s

// Which operations are one pass over rows.
// CHECK: rows_schedule.mlir:{{[0-9]+}}:{{.*}} rows ?, columns {{.*}}, f32: loops over rows
// CHECK-COUNT-4: rows_schedule.mlir:{{.*}} rows ?, columns {{.*}}, f32: in the loops of {{.*}}rows_schedule.mlir:
func.func @softmax(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
