// A splat of a million elements is one element; all ones and all zeros of several widths.
func.func @f() {
  %0 = arith.constant dense<0.0> : tensor<1000x1000xf32>
  %1 = arith.constant dense<-0.0> : tensor<100xf64>
  %2 = arith.constant dense<0xFF800000> : tensor<1000xf32>
  %3 = arith.constant dense<true> : tensor<1000xi1>
  %4 = arith.constant dense<-1> : tensor<1000xi8>
  %5 = arith.constant dense<0x7FC00001> : tensor<1000xf32>
  %6 = arith.constant dense<5> : vector<64xindex>
  %7 = arith.constant dense<(1.0, 0.0)> : tensor<64xcomplex<f64>>
  %8 = arith.constant dense<2.0> : tensor<64xbf16>
  %9 = arith.constant dense<1> : tensor<64xi128>
  %10 = arith.constant dense<false> : tensor<17xi1>
  return
}
