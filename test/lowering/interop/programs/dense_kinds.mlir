func.func @f() {
  %0 = arith.constant dense<[[1.0, 2.5], [-3.0, 1.0e10]]> : tensor<2x2xbf16>
  %1 = arith.constant dense<[1, -2, 3]> : tensor<3xi8>
  %2 = arith.constant dense<"0x0102030405060708"> : tensor<8xi8>
  %3 = arith.constant dense<[true, false, true]> : tensor<3xi1>
  %4 = arith.constant dense<(1.0,-2.0)> : tensor<4xcomplex<f32>>
  %5 = arith.constant dense<[(1,2), (3,4)]> : tensor<2xcomplex<i16>>
  %6 = arith.constant dense<1.5> : tensor<4xf8E4M3FN>
  %7 = arith.constant dense<[1.5, 0.5]> : tensor<2xf8E5M2>
  %8 = arith.constant dense<"0x003C00C0"> : tensor<2xf16>
  %9 = arith.constant dense<> : tensor<0x3xf32>
  %10 = arith.constant dense<42> : tensor<i32>
  %11 = arith.constant dense<[1, 170141183460469231731687303715884105727]> : tensor<2xi128>
  %12 = arith.constant dense<[7, -8]> : vector<2xi4>
  %13 = arith.constant dense<[3, 4]> : tensor<2xindex>
  %14 = arith.constant dense<1.0> : vector<[4]xf32>
  %15 = "test.constant"() {value = dense<[1, 255]> : tensor<2xui8>, other = dense<-1> : tensor<30xsi8>} : () -> tensor<2xui8>
  return
}
