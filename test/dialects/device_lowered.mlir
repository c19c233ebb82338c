// RUN: devscope-opt %s --split-input-file --no-scope-aliases | filecheck %s
// RUN: devscope-opt %s --split-input-file --print-op-generic | devscope-opt --split-input-file --no-scope-aliases | filecheck %s

// What the lowering makes on its way to calls of the runtime.

#dev0 = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
// CHECK-LABEL: func.func @views(
func.func @views(%b: memref<4xf32, #dev0>, %v: memref<4xf32, #dev1>, %h: memref<4xf32>) {
  // CHECK: "device.publish"(%{{.*}}) : (memref<4xf32>) -> ()
  "device.publish"(%h) : (memref<4xf32>) -> ()
  // CHECK: "device.end_view"(%{{.*}}, %{{.*}}) : (memref<4xf32, #device.scope<"opencl", 0 : i64, "", "">>, memref<4xf32, #device.scope<"opencl", 1 : i64, "", "">>) -> ()
  "device.end_view"(%b, %v) : (memref<4xf32, #dev0>, memref<4xf32, #dev1>) -> ()
  // CHECK: "device.flush"() {slot = 1 : i64} : () -> ()
  "device.flush"() {slot = 1 : i64} : () -> ()
  // CHECK: %{{.*}} = "device.kept"() {number = 0 : i64} : () -> memref<4xf32, #device.scope<"opencl", 0 : i64, "", "">>
  %k = "device.kept"() {number = 0 : i64} : () -> memref<4xf32, #dev0>
  // CHECK: "device.keep"(%{{.*}}) {number = 1 : i64} : (memref<4xf32, #device.scope<"opencl", 0 : i64, "", "">>) -> ()
  "device.keep"(%b) {number = 1 : i64} : (memref<4xf32, #dev0>) -> ()
  return
}

// -----

// A launch on its way through bufferisation.

// CHECK-LABEL: func.func @launch(
func.func @launch(%x: memref<4xf32>, %n: index) {
  linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%x : memref<4xf32>) outs(%x : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    // CHECK: "device.out"(%{{.*}}) : (f32) -> ()
    %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
      "device.in"(%in) : (f32) -> ()
      "device.out"(%out) : (f32) -> ()
    }) {kernel = @k} : (index, index, index, index, index, index) -> f32
    linalg.yield %0 : f32
  }
  return
}
