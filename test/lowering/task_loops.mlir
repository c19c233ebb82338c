// Loops on an OpenCL device that is a CPU: each workgroup is one work-item, which does a part by vectors.
// RUN: devscope lower %s --default opencl:0 --stage kernels | filecheck %s
// RUN: devscope lower %s --default opencl:0 --stage launchers | filecheck %s --check-prefix=LAUNCH

#whole = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// A function is arithmetic of vectors; what no vector is full of is loaded and stored one by one.
// CHECK-LABEL: gpu.func @each_
// CHECK-SAME: known_block_size = array<i32: 1, 1, 1>
// CHECK: scf.for {{.*}} step %c16
// CHECK: vector.load {{.*}}, vector<16xf32>
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: math.exp
// CHECK: vector.store {{.*}}, vector<16xf32>
// CHECK: scf.if
// CHECK: memref.load
// CHECK: memref.store
func.func @each(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// A fill and the sums that begin with it are one task's; vectors of 64 bytes at most.
// CHECK-LABEL: gpu.func @sums_
// CHECK-NOT: vector<16xf64>
// CHECK: vector.load {{.*}}, vector<8xf64>
// CHECK: vector.reduction <add>, {{.*}} : vector<8xf64> into f64
// LAUNCH-LABEL: func.func private @sums_opencl0_0(
// LAUNCH-COUNT-1: call @sums_opencl0_0_generic_
func.func @sums(%x: tensor<64x100xf64>) -> tensor<64xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<64xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<64xf64>) -> tensor<64xf64>
  %s = linalg.generic {indexing_maps = [#whole, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x100xf64>) outs(%f : tensor<64xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.addf %b, %a : f64
    linalg.yield %0 : f64
  } -> tensor<64xf64>
  return %s : tensor<64xf64>
}

// A function without arithmetic of vectors is a work-item for each element, which drivers vectorise.
// CHECK-LABEL: gpu.func @sines_
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: math.sin
func.func @sines(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.sin %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}

// The best of some elements is found by vectors.
// CHECK-LABEL: gpu.func @best_opencl0_0_
// CHECK: arith.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xi32>
func.func @best(%x: tensor<64x1000xf32>, %least: tensor<64xf32>, %none: tensor<64xi64>) -> tensor<64xi64> {
  %r:2 = linalg.generic {indexing_maps = [#whole, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x1000xf32>) outs(%least, %none : tensor<64xf32>, tensor<64xi64>) {
  ^bb0(%a: f32, %b: f32, %old: i64):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %most = arith.maximumf %a, %b : f32
    %more = arith.cmpf ogt, %a, %b : f32
    %place = arith.select %more, %n, %old : i64
    linalg.yield %most, %place : f32, i64
  } -> (tensor<64xf32>, tensor<64xi64>)
  return %r#1 : tensor<64xi64>
}

// A sum of all that is too short for parts begins with its fill, and is done by vectors, too.
// CHECK-LABEL: gpu.func @few_
// CHECK: memref.store
// CHECK: vector.load {{.*}}, vector<16xf32>
// CHECK: vector.reduction <add>
// LAUNCH-LABEL: func.func private @few_opencl0_0(
// LAUNCH-COUNT-1: call @few_opencl0_0_reduce_
func.func @few(%x: tensor<16x129xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<16x129xf32>) outs(%f : tensor<f32>) dimensions = [0, 1]
  return %r : tensor<f32>
}

// Iterations that go along rows of their own, one element after the other, are those of tasks.
// CHECK-LABEL: gpu.func @scattered_
// CHECK-SAME: known_block_size = array<i32: 1, 1, 1>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store
func.func @scattered(%x: tensor<900x800xf32>, %i: tensor<900x800xi32>) -> tensor<900x800xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c800 = arith.constant 800 : index
  %r = scf.forall (%a) in (900) shared_outs(%o = %x) -> (tensor<900x800xf32>) {
    %s = tensor.extract_slice %o[%a, 0] [1, 800] [1, 1] : tensor<900x800xf32> to tensor<800xf32>
    %l = scf.for %j = %c0 to %c800 step %c1 iter_args(%t = %s) -> (tensor<800xf32>) {
      %to = tensor.extract %i[%a, %j] : tensor<900x800xi32>
      %at = arith.index_cast %to : i32 to index
      %new = arith.sitofp %to : i32 to f32
      %p = tensor.insert %new into %t[%at] : tensor<800xf32>
      scf.yield %p : tensor<800xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l into %o[%a, 0] [1, 800] [1, 1] : tensor<800xf32> into tensor<900x800xf32>
    }
  }
  return %r : tensor<900x800xf32>
}

// What goes over the same rows is one pass over them.
// LAUNCH-LABEL: func.func private @rows_opencl0_0(
// LAUNCH: call @devscope_{{.*}}_rows_0(
// LAUNCH-NOT: call
// LAUNCH: return
// CHECK-LABEL: gpu.func @devscope_{{.*}}_rows_0
// CHECK: vector.reduction <add>
// CHECK: arith.divf {{.*}} : vector<16xf32>
func.func @rows(%x: tensor<256x100xf32>) -> tensor<256x100xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %p = math.exp %x : tensor<256x100xf32>
  %s = linalg.reduce {arith.addf} ins(%p : tensor<256x100xf32>) outs(%f : tensor<256xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#whole, #i, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<256x100xf32>, tensor<256xf32>) outs(%p : tensor<256x100xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<256x100xf32>
  return %y : tensor<256x100xf32>
}

// So is what is little work, of few and short rows, too: one launch.
// LAUNCH-LABEL: func.func private @few_rows_opencl0_0(
// LAUNCH: call @devscope_{{.*}}_rows_{{[0-9]+}}(
// LAUNCH-NOT: call
// LAUNCH: return
func.func @few_rows(%x: tensor<3x9xf32>, %e: tensor<3x9xf32>) -> tensor<3x9xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%rows : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.reduce {arith.addf} ins(%x : tensor<3x9xf32>) outs(%f : tensor<3xf32>) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#whole, #i, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<3x9xf32>, tensor<3xf32>) outs(%e : tensor<3x9xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<3x9xf32>
  return %r : tensor<3x9xf32>
}

// Parts of a sum of all are done by tasks, and added up by one.
// LAUNCH-LABEL: func.func private @total_opencl0_0(
// LAUNCH: memref<64xf32
// LAUNCH: call @total_opencl0_0_generic_
// LAUNCH: call @total_opencl0_0_generic_
func.func @total(%x: tensor<1048576xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<1048576xf32>) outs(%f : tensor<f32>) dimensions = [0]
  return %r : tensor<f32>
}

// What chooses along rows beside each other is cut into columns: fewer than sums are, of which there can be parts.
// LAUNCH-LABEL: func.func private @bests_opencl0_0_
// LAUNCH: %[[PARTS:.*]] = arith.constant 4 : index
// LAUNCH: gpu.launch_func {{.*}} blocks in (%[[PARTS]],
func.func @bests(%x: tensor<4096x4096xf32>, %least: tensor<4096xf32>, %none: tensor<4096xi64>) -> tensor<4096xi64> {
  %r:2 = linalg.generic {indexing_maps = [#whole, #j, #j], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x4096xf32>) outs(%least, %none : tensor<4096xf32>, tensor<4096xi64>) {
  ^bb0(%a: f32, %b: f32, %old: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %most = arith.maximumf %a, %b : f32
    %more = arith.cmpf ogt, %a, %b : f32
    %place = arith.select %more, %n, %old : i64
    linalg.yield %most, %place : f32, i64
  } -> (tensor<4096xf32>, tensor<4096xi64>)
  return %r#1 : tensor<4096xi64>
}
