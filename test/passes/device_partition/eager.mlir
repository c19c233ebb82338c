// RUN: %python %S/Inputs/opt.py %s --split-input-file -p 'device-partition{backends=host_lib:threads=2,acc}' | filecheck %s

// The first pattern of the table that matches takes it: bias and relu, in one body or apart, constants, empty tensors
// and fills, which two products share, are bound. A shared input is passed once. The same region is one function.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @fused(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<4x4xf32>, tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %m = arith.maximumf %s, %zero : f32
      linalg.yield %m : f32
  } -> tensor<4x4xf32>
  %2 = linalg.matmul ins(%1, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.matmul ins(%2, %2 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: func.func @fused(
// CHECK-SAME:    %[[X:\w+]]: tensor<4x4xf32>, %[[W:\w+]]: tensor<4x4xf32>, %[[B:\w+]]: tensor<4xf32>)
// CHECK-NEXT:    %[[R:.*]] = call @fused_host_lib_matmul_bias_relu(%[[X]], %[[W]], %[[B]])
// CHECK-NEXT:    %[[S:.*]] = call @fused_host_lib_matmul(%[[R]]) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    %[[T:.*]] = call @fused_host_lib_matmul(%[[S]])
// CHECK-NEXT:    return %[[S]], %[[T]]
// CHECK:       func.func private @fused_host_lib_matmul_bias_relu(
// CHECK-SAME:    %{{.*}}: tensor<4x4xf32> {device.scope = #cpu0}, %{{.*}}: tensor<4x4xf32> {device.scope = #cpu0}, %{{.*}}: tensor<4xf32> {device.scope = #cpu0})
// CHECK-SAME:    -> (tensor<4x4xf32> {device.scope = #cpu0})
// CHECK-SAME:    device.compiler = "host_lib"
// CHECK-SAME:    device.composite = "host_lib.matmul_bias_relu"
// CHECK-SAME:    device.target = #device.target<"host_lib", {threads = 2 : i64}>
// CHECK:         arith.constant 0.0
// CHECK:         linalg.fill
// CHECK:         linalg.matmul
// CHECK:         linalg.generic
// CHECK:         return
// CHECK:       func.func private @fused_host_lib_matmul(%[[A:.*]]: tensor<4x4xf32> {device.scope = #cpu0}) ->
// CHECK:         linalg.matmul ins(%[[A]], %[[A]]

// -----

// Nothing is taken whose inside is used outside, that would cross a region's border, that a predicate is against, that
// accumulates to data, or that is annotated with another scope.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @not_taken(%x: tensor<3x3xf32>, %y: tensor<4x4xf32>, %n: index) -> (tensor<3x3xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x3xf32>) -> tensor<3x3xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<3x3xf32>, tensor<3x3xf32>) outs(%f : tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = linalg.matmul ins(%y, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = math.absf %1 {device.scope = #dev} : tensor<4x4xf32>
  return %0, %1, %2 : tensor<3x3xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: func.func @not_taken
// CHECK-NOT:     call
// CHECK:         return

// -----

// Neighbours of a backend that merges become one function, with several results; not where that would be a cycle:
// %2 needs what is between. What is in a loop stays there.
func.func @merged(%x: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = math.absf %x : tensor<8xf32>
  %1 = math.tanh %0 : tensor<8xf32>
  %2 = math.exp %1 : tensor<8xf32>
  %3 = arith.addf %1, %2 : tensor<8xf32>
  %4 = scf.for %i = %zero to %n step %one iter_args(%a = %3) -> tensor<8xf32> {
    %5 = math.tanh %a : tensor<8xf32>
    scf.yield %5 : tensor<8xf32>
  }
  return %0, %1, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @merged
// CHECK:         %[[R:.*]]:2 = call @merged_acc_region(
// CHECK:         %[[E:.*]] = math.exp %[[R]]#1
// CHECK:         %[[A:.*]] = call @merged_acc_add(%[[R]]#1, %[[E]])
// CHECK:         scf.for {{.*}} = %[[A]]
// CHECK-NEXT:      func.call @merged_acc_tanh
// CHECK:       func.func private @merged_acc_relu
// CHECK:       func.func private @merged_acc_tanh
// CHECK-SAME:    device.composite = "acc.tanh"
// CHECK:       func.func private @merged_acc_region
// CHECK-NOT:     device.composite
// CHECK-SAME:    device.compiler = "acc"
// CHECK:         %[[P:.*]] = call @merged_acc_relu
// CHECK:         %[[Q:.*]] = call @merged_acc_tanh(%[[P]])
// CHECK:         return %[[P]], %[[Q]]

// -----

// Functions of compilers are left alone, by planning as well.
func.func private @done(%x: tensor<8xf32>) -> tensor<8xf32> attributes {device.compiler = "acc"} {
  %0 = math.absf %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @done
// CHECK-NEXT:    math.absf
