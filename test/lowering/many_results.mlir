// Functions with many results are put into what calls them: LLVM takes long for structs of that many fields.
// RUN: devscope lower %s --stage host-llvm | filecheck %s

func.func @many(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
    tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.addf %x, %y : tensor<4xf32>
  %1 = arith.mulf %x, %y : tensor<4xf32>
  %2 = arith.subf %x, %y : tensor<4xf32>
  return %0, %1, %2, %0, %1, %2, %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
    tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func @few(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.negf %x : tensor<4xf32>
  return %x, %0 : tensor<4xf32>, tensor<4xf32>
}

// CHECK: define {{.*}} @devscope_function_many({{.*}}) [[INLINED:#[0-9]+]] {
// CHECK: define {{.*}} @devscope_function_few({{[^#]*}}) {
// CHECK: attributes [[INLINED]] = { alwaysinline }
