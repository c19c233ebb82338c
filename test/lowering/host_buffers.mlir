// RUN: devscope lower %s --stage host-buffers | filecheck %s

#dev = #device.scope<"opencl", 0 : i64, "", "">

// Device data in host functions: memrefs in the memory space of their scope, carried through loops and freed.
// CHECK-LABEL: func.func @loop
// CHECK:         memref.alloc() {{.*}} : memref<4xf32, #opencl0>
// CHECK:         memref.copy {{.*}} : memref<4xf32> to memref<4xf32, #opencl0>
// CHECK:         scf.for {{.*}} -> (memref<4xf32, #opencl0>, i1)
// CHECK:           func.call @loop_opencl0_0({{.*}}) {device.call = "launch"} : (memref<4xf32, #opencl0>) -> memref<4xf32, #opencl0>
// CHECK:           func.call @note
// CHECK:           memref.dealloc {{.*}}#opencl0
// CHECK:         memref.copy {{.*}} : memref<4xf32, #opencl0> to memref<4xf32>
// CHECK:         memref.dealloc {{.*}}#opencl0
func.func private @note(%i: index) {
  %c0 = arith.constant 0 : index
  %0 = arith.cmpi sge, %i, %c0 : index
  cf.assert %0, "negative"
  return
}
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %t = math.tanh %a {device.scope = #dev} : tensor<4xf32>
    func.call @note(%i) : (index) -> ()
    scf.yield %t : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
