// RUN: devscope lower %s --stage host-llvm | filecheck %s

// Elements of 32 bits or less are divided as floats, for which processors have vectors; neither what is divided by a
// constant, nor what is no element.

// CHECK: sdiv i32
// CHECK: srem i32 {{.*}}, 3
// CHECK: fdiv <{{[0-9]+}} x double>
// CHECK: sdiv {{.*}}i64
// CHECK-NOT: fdiv
func.func @elements(%x: tensor<?xi32>, %y: tensor<?xi32>, %a: i32, %b: i32) -> (tensor<?xi32>, i32) {
  %0 = arith.divsi %x, %y : tensor<?xi32>
  %1 = arith.divsi %a, %b : i32
  return %0, %1 : tensor<?xi32>, i32
}

func.func @others(%x: tensor<64xi32>, %y: tensor<?xi64>) -> (tensor<64xi32>, tensor<?xi64>) {
  %threes = arith.constant dense<3> : tensor<64xi32>
  %0 = arith.remsi %x, %threes : tensor<64xi32>
  %1 = arith.divsi %y, %y : tensor<?xi64>
  return %0, %1 : tensor<64xi32>, tensor<?xi64>
}
