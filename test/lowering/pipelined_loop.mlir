// RUN: devscope lower %s --stage host-buffers | grep 'memref.copy\|scf.for' | filecheck %s

// A pipelined loop whose bounds are arguments copies what the loop would: slices to the device and back, nothing
// that it carries, whether an iteration updates it in place or not.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?x?xf32>, %first: index, %end: index) -> (tensor<?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %a = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %w = tensor.empty(%n, %m) : tensor<?x?xf32>
  %o = linalg.fill ins(%zero : f32) outs(%w : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r:2 = scf.for %i = %first to %end step %c1 iter_args(%sum = %a, %rows = %o)
      -> (tensor<?xf32>, tensor<?x?xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %t = math.tanh %s {device.scope = #dev} : tensor<?xf32>
    %p = arith.addf %sum, %t {device.scope = #host} : tensor<?xf32>
    %q = tensor.insert_slice %t into %rows[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    scf.yield %p, %q : tensor<?xf32>, tensor<?x?xf32>
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?x?xf32>
}
// CHECK:      scf.for
// CHECK-NEXT:   memref.copy {{.*}} to memref<?xf32, #opencl0>
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     memref.copy {{.*}} to memref<?xf32, #opencl0>
// CHECK-NEXT:     memref.copy {{%.*}}, [[OUT:%.*]] : memref<?xf32, #opencl0> to memref<?xf32>
// CHECK-NEXT:     memref.copy [[OUT]], {{%.*}} to memref<?xf32, strided<[1], offset: ?>>
// CHECK-NEXT:   memref.copy {{%.*}}, [[OUT:%.*]] : memref<?xf32, #opencl0> to memref<?xf32>
// CHECK-NEXT:   memref.copy [[OUT]], {{%.*}} to memref<?xf32, strided<[1], offset: ?>>
// CHECK-NOT:  memref.copy
