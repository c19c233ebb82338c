// What devscope-opt prints it reads again, to the same text; in the pretty and in the generic form.
// RUN: devscope-opt %s --split-input-file > %t.1
// RUN: devscope-opt %t.1 --split-input-file > %t.2
// RUN: diff %t.1 %t.2
// RUN: devscope-opt %s --split-input-file --print-op-generic > %t.generic
// RUN: devscope-opt %t.generic --split-input-file > %t.3
// RUN: diff %t.1 %t.3
// RUN: filecheck %s --input-file %t.1
// RUN: filecheck %s --input-file %t.generic --check-prefix=GENERIC

#dev  = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// CHECK:      #opencl0 = #device.scope<"opencl", 0 : i64, "", "">
// CHECK-NEXT: module
// CHECK:      func.func @dense
// CHECK:      linalg.matmul {device.scope = #opencl0}
// GENERIC:    "linalg.matmul"
// GENERIC:    device.scope = #opencl0
func.func @dense(%x: tensor<64x784xf32>, %w: tensor<784x128xf32>) -> tensor<64x128xf32> {
  %z = arith.constant dense<0.0> : tensor<64x128xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<64x784xf32>, tensor<784x128xf32>)
                                           outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = math.tanh %0 : tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}

// -----

// Every op of the dialect.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// CHECK:      // -----
// CHECK-DAG:  #cpu0 = #device.scope<"cpu", 0 : i64, "", "">
// CHECK-DAG:  #opencl0 = #device.scope<"opencl", 0 : i64, "", "">
// CHECK:      func.func @ops(%arg0: tensor<4xf32> {device.scope = #cpu0}) -> (tensor<4xf32> {device.scope = #cpu0})
// CHECK:      device.on_device %arg0 on #opencl0 {constrain_result = true} : tensor<4xf32>
// CHECK:      device.device_copy %0 from #opencl0 to #cpu0 : tensor<4xf32>
// CHECK:      "device.region"() ({
// CHECK:        "device.yield"(%1) : (tensor<4xf32>) -> ()
// CHECK-NEXT: }) {scope = #opencl0} : () -> tensor<4xf32>
func.func @ops(%x: tensor<4xf32> {device.scope = #host}) -> (tensor<4xf32> {device.scope = #host}) {
  %0 = "device.on_device"(%x) {scope = #dev, constrain_result = true} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "device.region"() ({
    "device.yield"(%1) : (tensor<4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Control flow, block names, unregistered dialects, non-finite and large constants, resources.
// CHECK:      // -----
// CHECK:      func.func @misc
// CHECK:      ^bb1:
// CHECK:      "other.op"() {x = #other.thing<"y", [1]>} : () -> !other.type<3>
// CHECK:      dense<0xFF800000> : tensor<2xf32>
// CHECK:      dense_resource<weights> : tensor<2xf32>
// CHECK:      weights: "0x040000000000803F0000807F"
func.func @misc(%c: i1, %i: i32) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2(%i : i32)
^bb1:
  %0 = "other.op"() {x = #other.thing<"y", [1]>} : () -> !other.type<3>
  %1 = arith.constant dense<0xFF800000> : tensor<2xf32>
  %2 = arith.constant dense_resource<weights> : tensor<2xf32>
  cf.br ^bb2(%i : i32)
^bb2(%r: i32):
  return %r : i32
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F0000807F"
    }
  }
#-}

// -----

// A part that holds nothing but a comment is an empty module.
// CHECK:      // -----
// CHECK:      module {
// CHECK-NEXT: }
