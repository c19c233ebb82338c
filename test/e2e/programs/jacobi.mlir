// A stencil solver: shifted slices of the grid, the interior written back, a fixed number of sweeps.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%grid: tensor<8x9xf64>) -> tensor<8x9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %quarter = arith.constant dense<0.25> : tensor<6x7xf64>
  %0 = scf.for %i = %c0 to %c6 step %c1 iter_args(%u = %grid) -> (tensor<8x9xf64>) {
    %north = tensor.extract_slice %u[0, 1] [6, 7] [1, 1] {device.scope = #dev} : tensor<8x9xf64> to tensor<6x7xf64>
    %south = tensor.extract_slice %u[2, 1] [6, 7] [1, 1] {device.scope = #dev} : tensor<8x9xf64> to tensor<6x7xf64>
    %west = tensor.extract_slice %u[1, 0] [6, 7] [1, 1] {device.scope = #dev} : tensor<8x9xf64> to tensor<6x7xf64>
    %east = tensor.extract_slice %u[1, 2] [6, 7] [1, 1] {device.scope = #dev} : tensor<8x9xf64> to tensor<6x7xf64>
    %1 = arith.addf %north, %south {device.scope = #dev} : tensor<6x7xf64>
    %2 = arith.addf %west, %east {device.scope = #dev} : tensor<6x7xf64>
    %3 = arith.addf %1, %2 {device.scope = #dev} : tensor<6x7xf64>
    %4 = arith.mulf %3, %quarter {device.scope = #dev} : tensor<6x7xf64>
    %5 = tensor.insert_slice %4 into %u[1, 1] [6, 7] [1, 1] {device.scope = #dev} : tensor<6x7xf64> into tensor<8x9xf64>
    scf.yield %5 : tensor<8x9xf64>
  }
  return %0 : tensor<8x9xf64>
}
