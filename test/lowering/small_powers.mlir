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

// Two roundings are too many for the few digits of f16; what is not constant stays.
// CHECK-LABEL: func.func @powers
// CHECK-COUNT-2: math.powf
// CHECK:         return
func.func @powers(%x: f16, %y: f32) -> (f16, f32) {
  %three = arith.constant 3.0 : f16
  %a = math.powf %x, %three : f16
  %b = math.powf %y, %y : f32
  return %a, %b : f16, f32
}
