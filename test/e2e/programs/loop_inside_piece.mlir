// Loops and branches all of whose work is on the device: one device function holds them. Prefix sums of each
// row with a tensor.extract/insert loop, and a loop over slices with a branch on the loop index.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %doubled = arith.addf %x, %x {device.scope = #dev} : tensor<3x7xf32>
  %sums = scf.for %i = %c0 to %c3 step %c1 iter_args(%rows = %doubled) -> (tensor<3x7xf32>) {
    %row:2 = scf.for %j = %c0 to %c7 step %c1 iter_args(%t = %rows, %sum = %zero) -> (tensor<3x7xf32>, f32) {
      %value = tensor.extract %t[%i, %j] {device.scope = #dev} : tensor<3x7xf32>
      %next = arith.addf %sum, %value : f32
      %updated = tensor.insert %next into %t[%i, %j] {device.scope = #dev} : tensor<3x7xf32>
      scf.yield %updated, %next : tensor<3x7xf32>, f32
    }
    scf.yield %row#0 : tensor<3x7xf32>
  }
  %slices = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %sums) -> (tensor<3x7xf32>) {
    %row = tensor.extract_slice %t[%i, 0] [1, 7] [1, 1] {device.scope = #dev} : tensor<3x7xf32> to tensor<7xf32>
    %first = arith.cmpi eq, %i, %c1 : index
    %changed = scf.if %first -> (tensor<7xf32>) {
      %0 = math.absf %row {device.scope = #dev} : tensor<7xf32>
      scf.yield %0 : tensor<7xf32>
    } else {
      %0 = arith.negf %row {device.scope = #dev} : tensor<7xf32>
      scf.yield %0 : tensor<7xf32>
    }
    %updated = tensor.insert_slice %changed into %t[%i, 0] [1, 7] [1, 1] {device.scope = #dev} : tensor<7xf32> into tensor<3x7xf32>
    scf.yield %updated : tensor<3x7xf32>
  }
  return %sums, %slices : tensor<3x7xf32>, tensor<3x7xf32>
}
