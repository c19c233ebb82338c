// Constants: small, splat, hexadecimal (infinity, NaN, negative zero), i1, f16, f64, i64 and index elements.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>, %k: tensor<3xi64>, %h: tensor<2xf16>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<3xi64>, tensor<2xf16>, tensor<3xf64>, tensor<3xindex>) {
  %small = arith.constant dense<[1.5, -2.0, 0.25, 1.0e3]> : tensor<4xf32>
  %special = arith.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000]> : tensor<4xf32>
  %mask = arith.constant dense<[true, false, false, true]> : tensor<4xi1>
  %infinity = arith.constant dense<0x7F800000> : tensor<4xf32>
  %0 = arith.addf %x, %small {device.scope = #dev} : tensor<4xf32>
  %1 = arith.select %mask, %special, %0 {device.scope = #dev} : tensor<4xi1>, tensor<4xf32>
  %2 = arith.cmpf olt, %special, %infinity {device.scope = #dev} : tensor<4xf32>
  %3 = arith.xori %2, %mask : tensor<4xi1>
  %big = arith.constant dense<[-9223372036854775808, 4611686018427387904, 7]> : tensor<3xi64>
  %4 = arith.addi %k, %big {device.scope = #dev} : tensor<3xi64>
  %half = arith.constant dense<[0x3C00, 0xFC00]> : tensor<2xf16>
  %5 = arith.addf %h, %half {device.scope = #dev} : tensor<2xf16>
  %double = arith.constant dense<[0x7FF0000000000000, 0.1, -0.1]> : tensor<3xf64>
  %6 = arith.negf %double {device.scope = #dev} : tensor<3xf64>
  %places = arith.constant dense<[5, 0, 12]> : tensor<3xindex>
  %one = arith.constant dense<1> : tensor<3xindex>
  %7 = arith.addi %places, %one : tensor<3xindex>
  return %special, %1, %3, %4, %5, %6, %7
    : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<3xi64>, tensor<2xf16>, tensor<3xf64>, tensor<3xindex>
}
