// More than 16 elements, no splats: the elements stay in MLIR.
func.func @f() -> (tensor<40xf32>, tensor<5x4xi64>, vector<20xi1>) {
  %0 = arith.constant dense<"0x000000000000803F0000004000004040000080400000A0400000C0400000E0400000004100001041000020410000304100004041000050410000604100007041000080410000884100009041000098410000A0410000A8410000B0410000B8410000C0410000C8410000D0410000D8410000E0410000E8410000F0410000F84100000042000004420000084200000C4200001042000014420000184200001C42"> : tensor<40xf32>
  %1 = arith.constant dense<[[-50, -49, -42, -23], [14, 75, 166, 293], [462, 679, 950, 1281], [1678, 2147, 2694, 3325], [4046, 4863, 5782, 6809]]> : tensor<5x4xi64>
  %2 = arith.constant dense<[false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true, true, false, true]> : vector<20xi1>
  %3 = arith.constant {test.extra = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<17xi8>, test.nested = [{a = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]> : tensor<18xi8>}]} 1 : i32
  return %0, %1, %2 : tensor<40xf32>, tensor<5x4xi64>, vector<20xi1>
}
