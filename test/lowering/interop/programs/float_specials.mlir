func.func @f() {
  %a = arith.constant dense<[0xFF800000, 0x7F800000, 1.0, 0x7FC00000]> : tensor<4xf32>
  %b = arith.constant 0xFF800000 : f32
  %c = arith.constant 0x7FC00001 : f32
  %d = arith.constant 0x7F800001 : f32
  %e = arith.constant 0xFFF8000000000001 : f64
  %f = arith.constant dense<0xFC00> : tensor<4xf16>
  %g = arith.constant 0x7E01 : f16
  %h = arith.constant dense<0xFF80> : tensor<2xbf16>
  %i = arith.constant 0x7F81 : bf16
  %j = arith.constant 1.401298464324817e-45 : f32
  %k = arith.constant 4.9406564584124654e-324 : f64
  %l = arith.constant 3.40282347E+38 : f32
  %m = arith.constant 0.1 : f32
  %n = arith.constant dense<1.000000e-01> : tensor<2xf64>
  %o = arith.constant -0.0 : f64
  %p = arith.constant 0xFF : f8E4M3FN
  %q = arith.constant 0x7C : f8E5M2
  %r = arith.constant 1.0e-300 : f128
  %s = arith.constant 2.5 : f80
  %t = arith.constant 0.5 : tf32
  return
}
