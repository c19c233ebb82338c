// RUN: devscope lower %s --default opencl:0 --stage plan | filecheck %s --check-prefix=PLAN
// RUN: devscope lower %s --default opencl:0 --stage launchers | filecheck %s --check-prefix=LAUNCH
// RUN: devscope lower %s --stage host | filecheck %s --check-prefix=HOST

// A scatter along the only axis is a loop over one element after the other: one kernel on a device.
func.func @flat(%x: tensor<1000xf32>, %i: tensor<4096x1xi64>, %u: tensor<4096xf32>) -> tensor<1000xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<1000xf32>, tensor<4096x1xi64>, tensor<4096xf32>) -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}
// PLAN:   scf.forall (%{{.*}}) in (1)
// PLAN:   } {device.scope = #opencl0, mapping =
// LAUNCH-NOT: memref.load
// LAUNCH: gpu.launch_func  @flat_opencl0_0_forall_0_kernel{{.*}} blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
// LAUNCH: gpu.func
// LAUNCH: scf.for
// LAUNCH: memref.store
// HOST-LABEL: func.func @devscope_function_flat
// HOST-NOT: scf.forall
// HOST: scf.for

// Iterations that go along rows of their own are tasks, of which little work has one.
func.func @rows(%x: tensor<50x30xf32>, %i: tensor<50x2xi64>) -> tensor<50x30xf32> {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%a) in (50) shared_outs(%o = %x) -> (tensor<50x30xf32>) {
    %s = tensor.extract_slice %o[%a, 0] [1, 30] [1, 1] : tensor<50x30xf32> to tensor<30xf32>
    %z = linalg.fill ins(%zero : f32) outs(%s : tensor<30xf32>) -> tensor<30xf32>
    %v = tensor.extract %i[%a, %c1] : tensor<50x2xi64>
    %w = arith.index_cast %v : i64 to index
    %f = arith.sitofp %v : i64 to f32
    %t = tensor.insert %f into %z[%w] : tensor<30xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%a, 0] [1, 30] [1, 1] : tensor<30xf32> into tensor<50x30xf32>
    }
  }
  return %r : tensor<50x30xf32>
}
// LAUNCH: gpu.launch_func  @rows_opencl0_0_forall_{{[0-9]}}_kernel{{.*}} blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
// LAUNCH: gpu.func
// LAUNCH: scf.for
// LAUNCH: scf.for
// LAUNCH: memref.store %cst
// LAUNCH: memref.store
