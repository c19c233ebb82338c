// RUN: devscope plan %s --default opencl:0 | filecheck %s
// RUN: devscope lower %s --default opencl:0 --stage memory | filecheck %s --check-prefix=ENTRY
// RUN: devscope lower %s --default opencl:0 --stage host | filecheck %s --check-prefix=CALLS

func.func @main(%x: tensor<4xf32>, %total: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {device.state = @main.at_first} {
  %0 = arith.addf %x, %total : tensor<4xf32>
  %1 = arith.mulf %0, %x : tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}
func.func @main.at_first() -> tensor<4xf32> {
  %0 = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// State is where what computes it is, before a call and after it.
// CHECK:      func.func @main(%arg0: tensor<4xf32> {device.scope = #cpu0},
// CHECK-SAME:     %arg1: tensor<4xf32> {device.scope = #opencl0})
// CHECK-SAME:     -> (tensor<4xf32> {device.scope = #cpu0}, tensor<4xf32> {device.scope = #opencl0})

// The entry takes and gives what is not kept on the device; others bring that in and out.
// ENTRY-LABEL: func.func @devscope_entry_main(%arg0: memref<4xf32>) -> memref<4xf32>
// ENTRY-NEXT:    %[[OLD:.*]] = "device.kept"() {number = 0 : i64} : () -> memref<4xf32, #opencl0>
// ENTRY-NEXT:    %[[MADE:.*]]:2 = call @devscope_function_main(%arg0, %[[OLD]])
// ENTRY-NEXT:    "device.keep"(%[[MADE]]#1) {number = 0 : i64}
// ENTRY-NEXT:    return %[[MADE]]#0
// ENTRY-LABEL: func.func @devscope_entry_main.at_first.load(%arg0: memref<4xf32>)
// ENTRY:         memref.copy %arg0, %[[NEW:.*]] :
// ENTRY-NEXT:    "device.keep"(%[[NEW]])
// ENTRY-LABEL: func.func @devscope_entry_main.at_first.read() -> memref<4xf32>
// ENTRY-NEXT:    "device.kept"

// CALLS-LABEL: func.func @devscope_entry_main(
// CALLS:         call @devscope_state(
// CALLS:         call @devscope_function_main(
// CALLS:         call @devscope_keep(
