// One function per family of constraint rows.
// RUN: devscope-opt %s -p 'device-plan,device-verify' | filecheck %s
// RUN: devscope-opt %s -p 'device-plan' > %t.once
// RUN: devscope-opt %t.once -p 'device-plan' > %t.twice
// RUN: diff %t.once %t.twice

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#map = affine_map<(d0) -> (d0)>

// Tensors that the body of a computation captures belong to the computation.
// CHECK-LABEL: func.func @captured
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0}, %[[T:.*]]: tensor<8xf32> {device.scope = #cpu0})
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[T]] from #cpu0 to #opencl0
// CHECK:         linalg.generic
// CHECK:           tensor.extract %[[C]]
// CHECK-NOT:       device.scope
// CHECK:           linalg.yield
// CHECK:         math.tanh %[[T]] : tensor<8xf32>
func.func @captured(%x: tensor<4xf32>, %table: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) attrs = {device.scope = #dev} {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %table[%i] : tensor<8xf32>
    %s = arith.addf %in, %v : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = math.tanh %table : tensor<8xf32>
  return %0, %1 : tensor<4xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @generated
// CHECK-SAME:    (%[[T:.*]]: tensor<8xf32> {device.scope = #opencl0})
// CHECK:         tensor.generate
// CHECK:           tensor.extract %[[T]]
// CHECK:         } {device.scope = #opencl0} : tensor<4xf32>
func.func @generated(%table: tensor<8xf32>) -> tensor<4xf32> {
  %0 = "tensor.generate"() ({
  ^bb0(%i: index):
    %v = tensor.extract %table[%i] : tensor<8xf32>
    tensor.yield %v : f32
  }) {device.scope = #dev} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A scalar is read back where the tensor is; the tensor is not copied. Scalars are on the host.
// CHECK-LABEL: func.func @read_back
// CHECK:         %[[E:.*]] = math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    %[[S:.*]] = tensor.extract %[[E]][%{{.*}}] {device.scope = #opencl0}
// CHECK-NEXT:    arith.addf %[[S]], %[[S]] : f32
// CHECK-NEXT:    tensor.insert %{{.*}} into %[[E]][%{{.*}}] {device.scope = #opencl0}
func.func @read_back(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = tensor.extract %0[%i] : tensor<4xf32>
  %2 = arith.addf %1, %1 : f32
  %3 = tensor.insert %2 into %0[%i] {device.scope = #dev} : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Shapes are on the host and cost no copy.
// CHECK-LABEL: func.func @shapes
// CHECK:         %[[E:.*]] = math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    tensor.dim %[[E]], %{{[a-z0-9]+}} : tensor<?xf32>
// CHECK-NEXT:    tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK-NOT:     device_copy
// CHECK:         return
func.func @shapes(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %0 = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %1 = tensor.dim %0, %c0 : tensor<?xf32>
  %2 = tensor.empty(%1) : tensor<?xf32>
  return %2 : tensor<?xf32>
}

// Views are where their source is. The shape operand of a reshape is on the host.
// CHECK-LABEL: func.func @views
// CHECK:         arith.constant dense<2> : tensor<2xi64>
// CHECK:         math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    tensor.reshape %{{.*}}(%{{.*}}) {device.scope = #opencl0}
// CHECK-NEXT:    tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] {device.scope = #opencl0}
// CHECK-NEXT:    tensor.cast %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    math.exp %{{.*}} {device.scope = #opencl0}
// CHECK-NOT:     device_copy
// CHECK:         return
func.func @views(%x: tensor<4xf32>) -> tensor<?xf32> {
  %s = arith.constant dense<2> : tensor<2xi64>
  %0 = math.exp %x {device.scope = #dev} : tensor<4xf32>
  %1 = tensor.reshape %0(%s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %3 = tensor.cast %2 : tensor<4xf32> to tensor<?xf32>
  %4 = math.exp %3 {device.scope = #dev} : tensor<?xf32>
  return %4 : tensor<?xf32>
}

// Constants, fills and views of them are made on every scope that needs them.
// CHECK-LABEL: func.func @made_anew
// CHECK:         %[[E1:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:    %[[E0:.*]] = tensor.empty() {device.scope = #opencl0}
// CHECK-NEXT:    %[[F1:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E1]]
// CHECK-NEXT:    %[[F0:.*]] = linalg.fill {device.scope = #opencl0} ins(%{{.*}}) outs(%[[E0]]
// CHECK:         arith.addf %{{.*}}, %[[F0]] {device.scope = #opencl0}
// CHECK-NEXT:    device.device_copy
// CHECK-NEXT:    arith.addf %{{.*}}, %[[F1]] : tensor<4xf32>
func.func @made_anew(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = arith.addf %x, %f {device.scope = #dev} : tensor<4xf32>
  %1 = arith.addf %0, %f : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Buffers and their views are one: no copy can stand for them.
// CHECK-LABEL: func.func @buffers
// CHECK-SAME:    -> (tensor<2xf32> {device.scope = #opencl0})
// CHECK:         memref.alloc() {device.scope = #opencl0}
// CHECK-NEXT:    %[[E:.*]] = math.exp %{{[a-z0-9]+}} : tensor<4xf32>
// CHECK-NEXT:    %[[C:.*]] = device.device_copy %[[E]] from
// CHECK-NEXT:    bufferization.materialize_in_destination %[[C]] in writable %{{.*}} {device.scope = #opencl0}
// CHECK-NEXT:    memref.subview %{{.*}}[0] [2] [1] {device.scope = #opencl0}
// CHECK-NEXT:    bufferization.to_tensor %{{.*}} restrict writable {device.scope = #opencl0}
func.func @buffers(%x: tensor<4xf32>) -> tensor<2xf32> {
  %m = memref.alloc() {device.scope = #dev} : memref<4xf32>
  %0 = math.exp %x {device.scope = #host} : tensor<4xf32>
  bufferization.materialize_in_destination %0 in writable %m : (tensor<4xf32>, memref<4xf32>) -> ()
  %v = memref.subview %m[0] [2] [1] : memref<4xf32> to memref<2xf32>
  %1 = bufferization.to_tensor %v restrict writable : memref<2xf32> to tensor<2xf32>
  return %1 : tensor<2xf32>
}

// A parallel loop runs on one scope with everything in it.
// CHECK-LABEL: func.func @parallel
// CHECK-SAME:    (%[[X:.*]]: tensor<4xf32> {device.scope = #opencl0})
// CHECK:         scf.forall
// CHECK-NEXT:      tensor.extract_slice %[[X]][%{{.*}}] [1] [1] : tensor
// CHECK-NEXT:      math.exp %{{[a-z0-9_]+}} : tensor
// CHECK:         } {device.scope = #opencl0}
func.func @parallel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = scf.forall (%i) in (4) shared_outs(%o = %e) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
    %t = math.exp %s {device.scope = #dev} : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %0 : tensor<4xf32>
}

// An operation that nobody knows keeps all it touches together.
// CHECK-LABEL: func.func @unknown
// CHECK-SAME:    (%{{.*}}: tensor<4xf32> {device.scope = #opencl0}, %{{.*}}: tensor<4xf32> {device.scope = #opencl0})
// CHECK:         "my.op"(%{{.*}}, %{{.*}}) {device.scope = #opencl0}
func.func @unknown(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = "my.op"(%x, %y) {device.scope = #dev} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, f32)
  return %0#0 : tensor<4xf32>
}
