// Inference batch normalisation with constants folded in at run time, residual connection, global average pool.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @main(%x: tensor<?x3x5x5xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3x5x5xf32>
  %epsilon = arith.constant dense<1.0e-3> : tensor<3xf32>
  %scale = arith.constant dense<[0.5, 1.0, 2.0]> : tensor<3xf32>
  %shift = arith.constant dense<[-1.0, 0.0, 0.25]> : tensor<3xf32>
  %stable = arith.addf %variance, %epsilon : tensor<3xf32>
  %inverse = math.rsqrt %stable : tensor<3xf32>
  %factor = arith.mulf %inverse, %scale : tensor<3xf32>
  %empty = tensor.empty(%n) : tensor<?x3x5x5xf32>
  %normal = linalg.generic {indexing_maps = [#image, #channel, #channel, #channel, #image],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x, %mean, %factor, %shift : tensor<?x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    outs(%empty : tensor<?x3x5x5xf32>) attrs = {device.scope = #dev} {
  ^bb0(%a: f32, %m: f32, %f: f32, %s: f32, %out: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %f : f32
    %2 = arith.addf %1, %s : f32
    linalg.yield %2 : f32
  } -> tensor<?x3x5x5xf32>
  %residual = arith.addf %normal, %x {device.scope = #dev} : tensor<?x3x5x5xf32>
  %pool_empty = tensor.empty(%n) : tensor<?x3xf32>
  %pool_init = linalg.fill ins(%zero : f32) outs(%pool_empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %sum = linalg.reduce {arith.addf} ins(%residual : tensor<?x3x5x5xf32>) outs(%pool_init : tensor<?x3xf32>)
    dimensions = [2, 3] {device.scope = #dev}
  %pixels = arith.constant 25.0 : f32
  %pixel_counts = tensor.splat %pixels[%n] : tensor<?x3xf32>
  %average = arith.divf %sum, %pixel_counts : tensor<?x3xf32>
  return %average : tensor<?x3xf32>
}
