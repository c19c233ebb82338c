// Conversions between element types: widening, narrowing, signed and unsigned, to and from index, bit casts.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %k: tensor<?xi32>, %b: tensor<?xi8>, %m: tensor<?xi1>)
    -> (tensor<?xf64>, tensor<?xf16>, tensor<?xi32>, tensor<?xf32>, tensor<?xf64>, tensor<?xi64>, tensor<?xi64>,
        tensor<?xi8>, tensor<?xindex>, tensor<?xi32>, tensor<?xf32>, tensor<?xi16>, tensor<?xf32>) {
  %0 = arith.extf %x {device.scope = #dev} : tensor<?xf32> to tensor<?xf64>
  %1 = arith.truncf %x {device.scope = #dev} : tensor<?xf32> to tensor<?xf16>
  %2 = arith.fptosi %x {device.scope = #dev} : tensor<?xf32> to tensor<?xi32>
  %3 = arith.sitofp %k {device.scope = #dev} : tensor<?xi32> to tensor<?xf32>
  %4 = arith.uitofp %k : tensor<?xi32> to tensor<?xf64>
  %5 = arith.extsi %b : tensor<?xi8> to tensor<?xi64>
  %6 = arith.extui %b {device.scope = #dev} : tensor<?xi8> to tensor<?xi64>
  %7 = arith.trunci %k {device.scope = #dev} : tensor<?xi32> to tensor<?xi8>
  %8 = arith.index_cast %k {device.scope = #dev} : tensor<?xi32> to tensor<?xindex>
  %9 = arith.bitcast %x {device.scope = #dev} : tensor<?xf32> to tensor<?xi32>
  %10 = arith.uitofp %m {device.scope = #dev} : tensor<?xi1> to tensor<?xf32>
  %11 = arith.extsi %m : tensor<?xi1> to tensor<?xi16>
  %12 = arith.sitofp %m {device.scope = #dev} : tensor<?xi1> to tensor<?xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12
    : tensor<?xf64>, tensor<?xf16>, tensor<?xi32>, tensor<?xf32>, tensor<?xf64>, tensor<?xi64>, tensor<?xi64>,
      tensor<?xi8>, tensor<?xindex>, tensor<?xi32>, tensor<?xf32>, tensor<?xi16>, tensor<?xf32>
}
