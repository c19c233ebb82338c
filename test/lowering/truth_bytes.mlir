// RUN: devscope lower %s --stage host-buffers | filecheck %s
// RUN: devscope lower %s --stage kernels --default opencl:0 | filecheck %s --check-prefix=KERNELS

// Truth values are bytes in buffers. What is only moved is moved as it is.

// CHECK-NOT: memref<{{[^,>]*}}xi1{{[,>]}}
// CHECK-LABEL: func.func @upside_down(
// CHECK: %[[BYTE:.*]] = memref.load {{.*}} : memref<8x40xi8>
// CHECK-NEXT: linalg.yield %[[BYTE]] : i8
// KERNELS-NOT: memref<{{[^,>]*}}xi1{{[,>]}}
// KERNELS: gpu.func @upside_down
// KERNELS: %[[BYTES:.*]] = vector.load {{.*}}, vector<[[LANES:[0-9]+]]xi8>
// KERNELS-NEXT: vector.store %[[BYTES]], {{.*}}, vector<[[LANES]]xi8>
func.func @upside_down(%a: tensor<8x40xi1>) -> tensor<8x40xi1> {
  %last = arith.constant 7 : index
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %k = arith.subi %last, %i : index
    %x = tensor.extract %a[%k, %j] : tensor<8x40xi1>
    tensor.yield %x : i1
  } : tensor<8x40xi1>
  return %r : tensor<8x40xi1>
}

// What combines bits combines bytes, so that a reduction is one.

// CHECK-LABEL: func.func @any(
// CHECK: linalg.fill ins(%{{.*}} : i8)
// CHECK: linalg.reduce { arith.ori } ins(%{{.*}} : memref<8x40xi8>) outs(%{{.*}} : memref<8xi8>)
func.func @any(%a: tensor<8x40xi1>) -> tensor<8xi1> {
  %false = arith.constant false
  %e = tensor.empty() : tensor<8xi1>
  %z = linalg.fill ins(%false : i1) outs(%e : tensor<8xi1>) -> tensor<8xi1>
  %r = linalg.reduce {arith.ori} ins(%a : tensor<8x40xi1>) outs(%z : tensor<8xi1>) dimensions = [1]
  return %r : tensor<8xi1>
}

// Numbers are made of bytes; conditions are bits.

// CHECK-LABEL: func.func @chosen(
// CHECK: ^bb0(%[[M:.*]]: i8, %[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-DAG: %[[BIT:.*]] = arith.trunci %[[M]] : i8 to i1
// CHECK-DAG: %[[N:.*]] = arith.uitofp %[[M]] : i8 to f32
// CHECK: arith.select %[[BIT]], %[[N]], %[[X]] : f32
func.func @chosen(%m: tensor<40xi1>, %x: tensor<40xf32>) -> tensor<40xf32> {
  %n = arith.uitofp %m : tensor<40xi1> to tensor<40xf32>
  %r = arith.select %m, %n, %x : tensor<40xi1>, tensor<40xf32>
  return %r : tensor<40xf32>
}
