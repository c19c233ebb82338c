// RUN: devscope-opt %s --split-input-file -p device-split,device-pipeline-loops,device-overlap | filecheck %s

// Copy in, compute, copy out: the next iteration is copied in and launched before this one is copied out.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @slices(%x: tensor<8x4xf32> {device.scope = #host}, %a: tensor<4xf32> {device.scope = #host})
    -> (tensor<4xf32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c3 iter_args(%sum = %a) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %n = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @slices
// CHECK:         [[LAST:%.*]] = arith.constant 6 : index
// CHECK:         tensor.extract_slice
// CHECK-NEXT:    [[IN:%.*]] = "device.device_copy"
// CHECK-NEXT:    [[FIRST:%.*]] = call @slices_opencl0_0([[IN]])
// CHECK-NEXT:    [[LOOP:%.*]]:2 = scf.for [[I:%.*]] = {{%.*}} to [[LAST]] step {{%.*}} iter_args([[SUM:%.*]] = %arg1, [[NOW:%.*]] = [[FIRST]])
// CHECK-NEXT:      [[NEXT:%.*]] = arith.addi [[I]]
// CHECK-NEXT:      [[SLICE:%.*]] = tensor.extract_slice %arg0[[[NEXT]], 0]
// CHECK-NEXT:      [[IN:%.*]] = "device.device_copy"([[SLICE]])
// CHECK-NEXT:      [[BEGIN:%.*]] = func.call @slices_opencl0_0([[IN]])
// CHECK-NEXT:      [[OUT:%.*]] = "device.device_copy"([[NOW]])
// CHECK-NEXT:      [[ADD:%.*]] = arith.addf [[SUM]], [[OUT]]
// CHECK-NEXT:      scf.yield [[ADD]], [[BEGIN]]
// CHECK:         [[OUT:%.*]] = "device.device_copy"([[LOOP]]#1)
// CHECK-NEXT:    [[RESULT:%.*]] = arith.addf [[LOOP]]#0, [[OUT]]
// CHECK-NEXT:    return [[RESULT]]

// -----

// The device's work needs the result of the iteration before: nothing can begin early.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @carried(%a: tensor<4xf32> {device.scope = #host}) -> (tensor<4xf32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %a) -> (tensor<4xf32>) {
    %d = "device.device_copy"(%sum) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %o : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @carried
// CHECK-NOT:     device.device_copy
// CHECK:         scf.for [[I:%.*]] = {{%.*}} iter_args([[SUM:%.*]] = %arg0) -> (tensor<4xf32>)
// CHECK-NEXT:      "device.device_copy"([[SUM]])

// -----

// The number of iterations is not known: the first may not exist.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @unknown(%x: tensor<8x4xf32> {device.scope = #host}, %a: tensor<4xf32> {device.scope = #host}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %m = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @unknown
// CHECK-NOT:     device.device_copy
// CHECK:         scf.for {{.*}} iter_args([[SUM:%.*]] = %arg1) -> (tensor<4xf32>)
// CHECK:         return
