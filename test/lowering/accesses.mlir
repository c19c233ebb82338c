// RUN: devscope lower %s --stage host-llvm | filecheck %s
// RUN: devscope lower %s --stage host-llvm | filecheck %s --check-prefix=PARTS

// Truth values are bytes in memory, bf16 are moved as i16: LLVM vectorises loops over these only.
// CHECK-NOT: load i1{{$|,}}
// CHECK-NOT: store i1{{ }}
// CHECK-NOT: {{load|store}} bfloat
func.func @both(%x: tensor<?xi1>, %y: tensor<?xi1>) -> tensor<?xi1> {
  %z = arith.andi %x, %y : tensor<?xi1>
  return %z : tensor<?xi1>
}

// Parts of vectors of bf16 are ones of i16.
// PARTS-DAG: @llvm.masked.load.v{{[0-9]+}}i16
// PARTS-DAG: @llvm.masked.store.v{{[0-9]+}}i16
// PARTS-NOT: call {{.*}}@llvm.masked.{{.*}}bf16
func.func @channels(%x: tensor<1x30x30x20xbf16>, %w: tensor<3x3x20xbf16>) -> tensor<1x28x28x20xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<1x28x28x20xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<1x28x28x20xbf16>) -> tensor<1x28x28x20xbf16>
  %y = linalg.depthwise_conv_2d_nhwc_hwc
    {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
    ins(%x, %w : tensor<1x30x30x20xbf16>, tensor<3x3x20xbf16>)
    outs(%zeros : tensor<1x28x28x20xbf16>) -> tensor<1x28x28x20xbf16>
  return %y : tensor<1x28x28x20xbf16>
}

func.func @twice(%x: tensor<128x10xbf16>) -> tensor<128x20xbf16> {
  %y = tensor.concat dim(1) %x, %x : (tensor<128x10xbf16>, tensor<128x10xbf16>) -> tensor<128x20xbf16>
  return %y : tensor<128x20xbf16>
}
