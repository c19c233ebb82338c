// A hand-written kernel on complex numbers.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @conj_k(%n: index, %x: memref<?xcomplex<f32>>, %y: memref<?xcomplex<f32>>) attributes {device.kernel} {
  %b = gpu.block_id x
  %d = gpu.block_dim x
  %t = gpu.thread_id x
  %o = arith.muli %b, %d : index
  %i = arith.addi %o, %t : index
  %in = arith.cmpi ult, %i, %n : index
  scf.if %in {
    %v = memref.load %x[%i] : memref<?xcomplex<f32>>
    %w = complex.conj %v : complex<f32>
    %u = complex.sqrt %w : complex<f32>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %s = scf.for %j = %zero to %n step %one iter_args(%z = %u) -> complex<f32> {
      %a = memref.load %x[%j] : memref<?xcomplex<f32>>
      %q = complex.add %z, %a : complex<f32>
      scf.yield %q : complex<f32>
    }
    memref.store %s, %y[%i] : memref<?xcomplex<f32>>
  }
  return
}
func.func @own(%x: tensor<?xcomplex<f32>>) -> tensor<?xcomplex<f32>> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xcomplex<f32>>
  %e = tensor.empty(%n) : tensor<?xcomplex<f32>>
  %r = "device.launch"(%n, %one, %one, %one, %one, %one) ({
    "device.in"(%n) : (index) -> ()
    "device.in"(%x) : (tensor<?xcomplex<f32>>) -> ()
    "device.out"(%e) : (tensor<?xcomplex<f32>>) -> ()
  }) {kernel = @conj_k, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xcomplex<f32>>
  return %r : tensor<?xcomplex<f32>>
}
