// RUN: devscope lower %s --stage host-llvm | filecheck %s

// Elements of 16 bits that are only moved go by vectors where parts of these have masks, as those of 32 bits do.

// CHECK-LABEL: define {{.*}}@devscope_function_upside_down(
// CHECK: load <32 x i16>
// CHECK: store <32 x i16>
func.func @upside_down(%a: tensor<64x600xi16>) -> tensor<64x600xi16>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %last = arith.constant 63 : index
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %k = arith.subi %last, %i : index
    %x = tensor.extract %a[%k, %j] : tensor<64x600xi16>
    tensor.yield %x : i16
  } : tensor<64x600xi16>
  return %r : tensor<64x600xi16>
}
