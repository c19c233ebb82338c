// RUN: devscope lower %s --stage host-llvm | filecheck %s

// What a body loads goes by vectors where it stands side by side along the innermost loop; LLVM has none for it.

// CHECK-LABEL: define {{.*}}@devscope_function_upside_down(
// CHECK: load <[[LANES:[0-9]+]] x float>
// CHECK: store <[[LANES]] x float>
// CHECK-LABEL: define {{.*}}@devscope_function_by_columns(
// CHECK-NOT: x float>
// CHECK-LABEL: define {{.*}}@devscope_entry_
func.func @upside_down(%a: tensor<64x600xf32>) -> tensor<64x600xf32> {
  %last = arith.constant 63 : index
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %k = arith.subi %last, %i : index
    %x = tensor.extract %a[%k, %j] : tensor<64x600xf32>
    tensor.yield %x : f32
  } : tensor<64x600xf32>
  return %r : tensor<64x600xf32>
}

func.func @by_columns(%a: tensor<64x7xf32>, %at: tensor<7xindex>) -> tensor<64x7xf32> {
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %k = tensor.extract %at[%j] : tensor<7xindex>
    %x = tensor.extract %a[%i, %k] : tensor<64x7xf32>
    tensor.yield %x : f32
  } : tensor<64x7xf32>
  return %r : tensor<64x7xf32>
}
