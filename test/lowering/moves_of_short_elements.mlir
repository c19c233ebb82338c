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

// So do short loops that compute with them, of f32 on the way.

// CHECK-LABEL: define {{.*}}@devscope_function_differences(
// CHECK: @llvm.masked.load.v16f16
// CHECK: fsub <16 x half>
func.func @differences(%a: tensor<64x12xf16>, %b: tensor<12xf16>) -> tensor<64x12xf16>
    attributes {device.target = #device.target<"cpu", {cpu = "x86-64-v4"}>} {
  %e = tensor.empty() : tensor<64x12xf16>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a, %b : tensor<64x12xf16>, tensor<12xf16>) outs(%e : tensor<64x12xf16>) {
  ^bb0(%x: f16, %y: f16, %o: f16):
    %d = arith.subf %x, %y : f16
    linalg.yield %d : f16
  } -> tensor<64x12xf16>
  return %r : tensor<64x12xf16>
}
