// RUN: devscope lower %s --stage host-buffers | filecheck %s

// CHECK-LABEL: func.func @products
// CHECK-NOT:   math.{{f?pow}}
// CHECK:       return
func.func @products(%x: tensor<8xf32>, %n: f64) -> (tensor<8xf32>, tensor<8xf32>, f64) {
  %three = arith.constant dense<3.0> : tensor<8xf32>
  %less = arith.constant -1.0 : f64
  %a = math.powf %x, %three : tensor<8xf32>
  %b = arith.mulf %a, %x : tensor<8xf32>
  %c = math.powf %n, %less : f64
  return %a, %b, %c : tensor<8xf32>, tensor<8xf32>, f64
}

// Two roundings are too many for the few digits of f16, and of f32 for those of f16 not.
// CHECK-LABEL: func.func @short
// CHECK:       %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT:  %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT:  %[[CUBE:.*]] = arith.mulf %[[SQUARE]], %[[X]] : f32
// CHECK-NEXT:  arith.truncf %[[CUBE]] : f32 to f16
func.func @short(%x: tensor<?xf16>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %three = arith.constant 3.0 : f16
  %n = tensor.dim %x, %c0 : tensor<?xf16>
  %y = tensor.empty(%n) : tensor<?xf16>
  %a = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<?xf16>) outs(%y : tensor<?xf16>) {
  ^bb0(%in: f16, %out: f16):
    %p = math.powf %in, %three : f16
    linalg.yield %p : f16
  } -> tensor<?xf16>
  return %a : tensor<?xf16>
}

// CHECK-LABEL: func.func @powers
// CHECK-SAME:  (%[[X:[a-z0-9]+]]: f16{{.*}}, %[[Y:[a-z0-9]+]]: f32
// CHECK:       math.exp2 %[[X]] : f16
// CHECK:       math.powf %[[Y]], %[[Y]]
// CHECK:       return
func.func @powers(%x: f16, %y: f32) -> (f16, f32) {
  %two = arith.constant 2.0 : f16
  %a = math.powf %two, %x : f16
  %b = math.powf %y, %y : f32
  return %a, %b : f16, f32
}

// CHECK-LABEL: func.func @roots
// CHECK-NOT:   math.powf
// CHECK:       math.sqrt
// CHECK:       arith.cmpf oeq
// CHECK:       arith.select
// CHECK:       arith.extf %{{.*}} : f16 to f32
// CHECK:       math.sqrt
// CHECK:       arith.divf
// CHECK:       arith.truncf %{{.*}} : f32 to f16
// CHECK-NOT:   math.powf
// CHECK:       return
func.func @roots(%x: tensor<8xf32>, %y: f16) -> (tensor<8xf32>, f16) {
  %half = arith.constant dense<0.5> : tensor<8xf32>
  %less = arith.constant -0.5 : f16
  %a = math.powf %x, %half : tensor<8xf32>
  %b = math.powf %y, %less : f16
  return %a, %b : tensor<8xf32>, f16
}
