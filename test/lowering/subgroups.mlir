// RUN: devscope lower %s --stage kernels | filecheck %s

// Work-items of a GPU that says of sub-groups how many they have exchange numbers in them, places of elements, too.
#dev = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {type = "gpu", subgroup = 16}>, "">

// CHECK:         gpu.func @sum_{{.*}} : memref<256xf64, #gpu.address_space<workgroup>>
// CHECK-COUNT-4:   gpu.shuffle xor %{{.*}}, %{{.*}}, %c16_i32 : f64
// CHECK:           memref.store %{{.*}} : memref<256xf64, #gpu.address_space<workgroup>>
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
func.func @sum(%x: tensor<37x?xf64>, %o: tensor<37xf64>) -> tensor<37xf64> {
  %y = linalg.reduce {arith.addf} {device.scope = #dev} ins(%x : tensor<37x?xf64>) outs(%o : tensor<37xf64>)
    dimensions = [1]
  return %y : tensor<37xf64>
}
