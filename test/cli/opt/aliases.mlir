// Scopes are printed through aliases; the module is the same with and without them.
// RUN: devscope-opt %s --no-scope-aliases > %t.full
// RUN: devscope-opt %s > %t.short
// RUN: devscope-opt %t.short --no-scope-aliases > %t.again
// RUN: diff %t.full %t.again
// RUN: filecheck %s --input-file %t.short
// RUN: filecheck %s --input-file %t.full --check-prefix=FULL
// RUN: devscope-opt %s --print-op-generic --print-debuginfo | devscope-opt --no-scope-aliases > %t.generic
// RUN: diff %t.full %t.generic

// FULL-NOT: #opencl0 =
// FULL-NOT: #cuda

// CHECK-DAG:  #cpu0 = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-DAG:  #opencl0 = #device.scope<"opencl", 0 : i64, "", "">
// CHECK-DAG:  #opencl = #device.scope<"opencl", -1 : i64, "", "">
// CHECK-DAG:  #cuda1_shared = #device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_90"}>, "shared">
// CHECK-DAG:  #cuda1_shared_1 = #device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_80"}>, "shared">
// CHECK:      #map = affine_map
// CHECK-LABEL: func.func @f
// CHECK-SAME: tensor<4xf32, #opencl0>
func.func @f(%x: tensor<4xf32, #device.scope<"opencl", 0 : i64, "", "">>, %m: memref<4xf32, affine_map<(d0) -> (d0 * 2)>>) {
  // A string and an opaque attribute keep their text; a dictionary, a list and a location do not hide a scope.
  // CHECK-NEXT: "other.op"() {
  // CHECK-SAME:   list = [#cpu0, {inner = #opencl}],
  // CHECK-SAME:   opaque = #other.thing<#device.scope<"cpu", 0 : i64, "", "">, (i32) -> i32>,
  // CHECK-SAME:   text = "#device.scope<\22cpu\22, 0 : i64, \22\22, \22\22>"
  "other.op"() {
    text = "#device.scope<\"cpu\", 0 : i64, \"\", \"\">",
    opaque = #other.thing<#device.scope<"cpu", 0 : i64, "", "">, (i32) -> i32>,
    list = [#device.scope<"cpu", 0 : i64, "", "">, {inner = #device.scope<"opencl", -1 : i64, "", "">}]
  } : () -> ()
  // CHECK-NEXT: "other.op"() {a = #cuda1_shared, b = #cuda1_shared_1} : () -> ()
  "other.op"() {
    a = #device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_90"}>, "shared">,
    b = #device.scope<"cuda", 1 : i64, #device.target<"cuda", {arch = "sm_80"}>, "shared">
  } : () -> ()
  return
}
