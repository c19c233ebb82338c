// The host decides on a number that the device computed: normalise only when the norm is above one.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, i1) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %one = arith.constant 1.0 : f32
  %zero = arith.constant dense<0.0> : tensor<f32>
  %square = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                            iterator_types = ["reduction"]}
    ins(%x : tensor<?xf32>) outs(%zero : tensor<f32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %0, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %norm = tensor.extract %square[] : tensor<f32>
  %large = arith.cmpf ogt, %norm, %one : f32
  %2 = scf.if %large -> (tensor<?xf32>) {
    %scale = math.rsqrt %norm : f32
    %scales = tensor.splat %scale[%n] : tensor<?xf32>
    %3 = arith.mulf %x, %scales {device.scope = #dev} : tensor<?xf32>
    scf.yield %3 : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  return %2, %large : tensor<?xf32>, i1
}
