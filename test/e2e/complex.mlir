// Complex numbers in all places where programs have numbers; test_complex.py has the references.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @scalars(%a: complex<f32>, %n: index) -> (complex<f32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = complex.constant [1.0 : f32, 0.0 : f32] : complex<f32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%z = %one) -> complex<f32> {
    %m = complex.mul %z, %a : complex<f32>
    scf.yield %m : complex<f32>
  }
  %m = complex.abs %r : complex<f32>
  return %r, %m : complex<f32>, f32
}
func.func @consts(%x: tensor<4xcomplex<f32>>, %y: tensor<40xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<40xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %small = arith.constant dense<[(1.0, 2.0), (0.1, -0.0), (0x7FC00000, 0x7F800000), (3.0, 4.0)]> : tensor<4xcomplex<f32>>
  %splat = arith.constant dense<(0.5, 2.0)> : tensor<4xcomplex<f32>>
  %large = arith.constant dense<[(0.0,0.1),(1.0,0.1),(2.0,0.1),(3.0,0.1),(4.0,0.1),(5.0,0.1),(6.0,0.1),(7.0,0.1),(8.0,0.1),(9.0,0.1),(10.0,0.1),(11.0,0.1),(12.0,0.1),(13.0,0.1),(14.0,0.1),(15.0,0.1),(16.0,0.1),(17.0,0.1),(18.0,0.1),(19.0,0.1),(20.0,0.1),(21.0,0.1),(22.0,0.1),(23.0,0.1),(24.0,0.1),(25.0,0.1),(26.0,0.1),(27.0,0.1),(28.0,0.1),(29.0,0.1),(30.0,0.1),(31.0,0.1),(32.0,0.1),(33.0,0.1),(34.0,0.1),(35.0,0.1),(36.0,0.1),(37.0,0.1),(38.0,0.1),(39.0,0.1)]> : tensor<40xcomplex<f32>>
  %e = tensor.empty() : tensor<4xcomplex<f32>>
  %1 = linalg.add {device.scope = #dev} ins(%x, %small : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) outs(%e : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %e40 = tensor.empty() : tensor<40xcomplex<f32>>
  %2 = linalg.mul {device.scope = #dev} ins(%y, %large : tensor<40xcomplex<f32>>, tensor<40xcomplex<f32>>) outs(%e40 : tensor<40xcomplex<f32>>) -> tensor<40xcomplex<f32>>
  %3 = linalg.mul {device.scope = #dev} ins(%x, %splat : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) outs(%e : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %1, %2, %3 : tensor<4xcomplex<f32>>, tensor<40xcomplex<f32>>, tensor<4xcomplex<f32>>
}
func.func private @helper(%x: tensor<?xcomplex<f32>>, %k: complex<f32>) -> tensor<?xcomplex<f32>> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xcomplex<f32>>
  %e = tensor.empty(%d) : tensor<?xcomplex<f32>>
  %f = linalg.fill {device.scope = #dev} ins(%k : complex<f32>) outs(%e : tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f32>>
  %1 = linalg.sub {device.scope = #dev} ins(%x, %f : tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) outs(%e : tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f32>>
  return %1 : tensor<?xcomplex<f32>>
}
func.func @reduce(%x: tensor<?xcomplex<f32>>, %k: complex<f32>, %n: index) -> (complex<f32>, tensor<complex<f32>>, tensor<?xcomplex<f32>>, tensor<2xcomplex<f32>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = func.call @helper(%x, %k) : (tensor<?xcomplex<f32>>, complex<f32>) -> tensor<?xcomplex<f32>>
  %z = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %e = tensor.empty() : tensor<complex<f32>>
  %f = linalg.fill {device.scope = #dev} ins(%z : complex<f32>) outs(%e : tensor<complex<f32>>) -> tensor<complex<f32>>
  %s = linalg.reduce ins(%y : tensor<?xcomplex<f32>>) outs(%f : tensor<complex<f32>>) dimensions = [0] {device.scope = #dev} (%a: complex<f32>, %b: complex<f32>) {
     %q = complex.add %a, %b : complex<f32>
     linalg.yield %q : complex<f32> }
  %v = tensor.extract %s[] : tensor<complex<f32>>
  %w = complex.exp %v : complex<f32>
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%t = %y) -> tensor<?xcomplex<f32>> {
    %t2 = func.call @helper(%t, %w) : (tensor<?xcomplex<f32>>, complex<f32>) -> tensor<?xcomplex<f32>>
    scf.yield %t2 : tensor<?xcomplex<f32>>
  }
  %sl = tensor.extract_slice %loop[1] [2] [2] : tensor<?xcomplex<f32>> to tensor<2xcomplex<f32>>
  return %v, %s, %loop, %sl : complex<f32>, tensor<complex<f32>>, tensor<?xcomplex<f32>>, tensor<2xcomplex<f32>>
}
func.func @tensorcond(%p: tensor<8xi1>, %x: tensor<8xcomplex<f32>>, %y: tensor<8xcomplex<f32>>) -> (tensor<8xcomplex<f32>>, tensor<8xi1>, tensor<8xf32>) {
  %0 = arith.select %p, %x, %y {device.scope = #dev} : tensor<8xi1>, tensor<8xcomplex<f32>>
  %e = tensor.empty() : tensor<8xi1>
  %1 = linalg.map {complex.eq} ins(%x, %0 : tensor<8xcomplex<f32>>, tensor<8xcomplex<f32>>) outs(%e : tensor<8xi1>) {device.scope = #dev}
  %f = tensor.empty() : tensor<8xf32>
  %2 = linalg.map {complex.re} ins(%0 : tensor<8xcomplex<f32>>) outs(%f : tensor<8xf32>) {device.scope = #dev}
  return %0, %1, %2 : tensor<8xcomplex<f32>>, tensor<8xi1>, tensor<8xf32>
}
func.func @bits(%x: complex<f32>, %b: i64) -> (i64, complex<f32>) {
  %0 = complex.bitcast %x : complex<f32> to i64
  %1 = complex.bitcast %b : i64 to complex<f32>
  return %0, %1 : i64, complex<f32>
}
func.func @mm(%x: tensor<4x5xcomplex<f64>>, %y: tensor<5x6xcomplex<f64>>) -> tensor<4x6xcomplex<f64>> {
  %k = arith.constant dense<(1.0, 2.0)> : tensor<4x6xcomplex<f64>>
  %1 = linalg.matmul {device.scope = #dev} ins(%x, %y : tensor<4x5xcomplex<f64>>, tensor<5x6xcomplex<f64>>) outs(%k : tensor<4x6xcomplex<f64>>) -> tensor<4x6xcomplex<f64>>
  return %1 : tensor<4x6xcomplex<f64>>
}
func.func @products(%x: tensor<4x5xcomplex<f64>>, %y: tensor<5xcomplex<f64>>, %z: tensor<4xcomplex<f64>>, %k: tensor<complex<f64>>) -> (tensor<4xcomplex<f64>>, tensor<complex<f64>>) {
  %1 = linalg.matvec {device.scope = #dev} ins(%x, %y : tensor<4x5xcomplex<f64>>, tensor<5xcomplex<f64>>) outs(%z : tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  %2 = linalg.dot {device.scope = #dev} ins(%z, %1 : tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) outs(%k : tensor<complex<f64>>) -> tensor<complex<f64>>
  return %1, %2 : tensor<4xcomplex<f64>>, tensor<complex<f64>>
}
func.func @pack(%x: tensor<4x6xcomplex<f64>>) -> tensor<2x3x2x2xcomplex<f64>> {
  %e = tensor.empty() : tensor<2x3x2x2xcomplex<f64>>
  %1 = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %e {device.scope = #dev} : tensor<4x6xcomplex<f64>> -> tensor<2x3x2x2xcomplex<f64>>
  return %1 : tensor<2x3x2x2xcomplex<f64>>
}
func.func @shapes(%x: tensor<2x3xcomplex<f64>>, %k: complex<f64>) -> (tensor<4x5xcomplex<f64>>, tensor<6xcomplex<f64>>, tensor<3x2xcomplex<f64>>, tensor<2x3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<2xcomplex<f64>>, tensor<4x3xcomplex<f64>>) attributes {device.scope = #dev} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.pad %x low[1, 1] high[1, 1] { ^bb0(%i: index, %j: index): tensor.yield %k : complex<f64> } : tensor<2x3xcomplex<f64>> to tensor<4x5xcomplex<f64>>
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xcomplex<f64>> into tensor<6xcomplex<f64>>
  %e = tensor.empty() : tensor<3x2xcomplex<f64>>
  %t = linalg.transpose ins(%x : tensor<2x3xcomplex<f64>>) outs(%e : tensor<3x2xcomplex<f64>>) permutation = [1, 0]
  %v = tensor.extract %x[%c1, %c0] : tensor<2x3xcomplex<f64>>
  %w = complex.log %v : complex<f64>
  %ins = tensor.insert %w into %x[%c0, %c1] : tensor<2x3xcomplex<f64>>
  %fe = tensor.from_elements %k, %w, %v : tensor<3xcomplex<f64>>
  %k0 = complex.constant [0.5, 1.5] : complex<f64>
  %sp = tensor.splat %k0 : tensor<2xcomplex<f64>>
  %cc = tensor.concat dim(0) %x, %ins : (tensor<2x3xcomplex<f64>>, tensor<2x3xcomplex<f64>>) -> tensor<4x3xcomplex<f64>>
  return %p, %f, %t, %ins, %fe, %sp, %cc : tensor<4x5xcomplex<f64>>, tensor<6xcomplex<f64>>, tensor<3x2xcomplex<f64>>, tensor<2x3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<2xcomplex<f64>>, tensor<4x3xcomplex<f64>>
}
func.func @tiny(%x: tensor<0x3xcomplex<f64>>, %y: tensor<1x1xcomplex<f64>>, %z: tensor<complex<f64>>) -> (tensor<0x3xcomplex<f64>>, tensor<1x1xcomplex<f64>>, tensor<complex<f64>>) attributes {device.scope = #dev} {
  %0 = linalg.add ins(%x, %x : tensor<0x3xcomplex<f64>>, tensor<0x3xcomplex<f64>>) outs(%x : tensor<0x3xcomplex<f64>>) -> tensor<0x3xcomplex<f64>>
  %1 = linalg.matmul ins(%y, %y : tensor<1x1xcomplex<f64>>, tensor<1x1xcomplex<f64>>) outs(%y : tensor<1x1xcomplex<f64>>) -> tensor<1x1xcomplex<f64>>
  %2 = linalg.mul ins(%z, %z : tensor<complex<f64>>, tensor<complex<f64>>) outs(%z : tensor<complex<f64>>) -> tensor<complex<f64>>
  return %0, %1, %2 : tensor<0x3xcomplex<f64>>, tensor<1x1xcomplex<f64>>, tensor<complex<f64>>
}
func.func @choose(%p: i1, %x: tensor<4xcomplex<f32>>, %a: complex<f32>) -> (tensor<4xcomplex<f32>>, complex<f32>) attributes {device.scope = #dev} {
  %r:2 = scf.if %p -> (tensor<4xcomplex<f32>>, complex<f32>) {
    %0 = linalg.add ins(%x, %x : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) outs(%x : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %b = complex.mul %a, %a : complex<f32>
    scf.yield %0, %b : tensor<4xcomplex<f32>>, complex<f32>
  } else {
    scf.yield %x, %a : tensor<4xcomplex<f32>>, complex<f32>
  }
  %e = tensor.empty() : tensor<4xcomplex<f32>>
  %g = linalg.generic {indexing_maps = [affine_map<(i)->(i)>,affine_map<(i)->(i)>], iterator_types=["parallel"]} ins(%r#0 : tensor<4xcomplex<f32>>) outs(%e : tensor<4xcomplex<f32>>) {
  ^bb0(%u: complex<f32>, %o: complex<f32>):
    %q = scf.if %p -> complex<f32> {
      %s = complex.add %u, %r#1 : complex<f32>
      scf.yield %s : complex<f32>
    } else { scf.yield %u : complex<f32> }
    linalg.yield %q : complex<f32>
  } -> tensor<4xcomplex<f32>>
  return %g, %r#1 : tensor<4xcomplex<f32>>, complex<f32>
}
