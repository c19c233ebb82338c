// RUN: devscope-opt %s --split-input-file -p device-split,device-overlap | filecheck %s

// The host works on its half while the device works on the other: copy in and launch come first, although host
// work stands before them in the source; the copy that waits for the device comes last.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @halves(%x: tensor<4xf32> {device.scope = #host}, %y: tensor<4xf32> {device.scope = #host})
    -> (tensor<4xf32> {device.scope = #host}) {
  %0 = math.exp %x : tensor<4xf32>
  %1 = "device.device_copy"(%y) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.tanh %1 {device.scope = #dev} : tensor<4xf32>
  %3 = "device.device_copy"(%2) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = math.sqrt %0 : tensor<4xf32>
  %5 = arith.addf %3, %4 : tensor<4xf32>
  return %5 : tensor<4xf32>
}
// CHECK-LABEL: func.func @halves
// CHECK:         [[IN:%.*]] = device.device_copy %arg1 from
// CHECK-NEXT:    [[D:%.*]] = call @halves_opencl0_0([[IN]])
// CHECK-NEXT:    [[A:%.*]] = math.exp %arg0
// CHECK-NEXT:    [[B:%.*]] = math.sqrt [[A]]
// CHECK-NEXT:    [[OUT:%.*]] = device.device_copy [[D]] from
// CHECK-NEXT:    [[R:%.*]] = arith.addf [[OUT]], [[B]]
// CHECK-NEXT:    return [[R]]

// -----

// Host work that a device waits for comes before host work that none waits for.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @feeds(%x: tensor<4xf32> {device.scope = #host})
    -> (tensor<4xf32> {device.scope = #host}, tensor<4xf32> {device.scope = #dev}) {
  %0 = math.exp %x : tensor<4xf32>
  %1 = math.sqrt %x : tensor<4xf32>
  %2 = "device.device_copy"(%1) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = math.tanh %2 {device.scope = #dev} : tensor<4xf32>
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @feeds
// CHECK:         [[S:%.*]] = math.sqrt
// CHECK-NEXT:    [[C:%.*]] = device.device_copy [[S]] from
// CHECK-NEXT:    call @feeds_opencl0_0([[C]])
// CHECK-NEXT:    math.exp

// -----

// What has side effects keeps its order; work on the device may move before it.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @first()
func.func private @second()
func.func @effects(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  func.call @first() : () -> ()
  func.call @second() : () -> ()
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @effects
// CHECK:         [[D:%.*]] = call @effects_opencl0_0
// CHECK-NEXT:    call @first
// CHECK-NEXT:    call @second
// CHECK-NEXT:    return [[D]]

// -----

// An assertion comes before what it may guard: work on the device, and elements of tensors; a copy does not wait.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @guarded(%x: tensor<?xf32> {device.scope = #host}, %i: index) -> (tensor<?xf32> {device.scope = #dev}, f32) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %there = arith.cmpi ult, %i, %n : index
  cf.assert %there, "no such element"
  %y = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<?xf32>) -> tensor<?xf32>
  %0 = math.tanh %y {device.scope = #dev} : tensor<?xf32>
  %1 = tensor.extract %x[%i] : tensor<?xf32>
  return %0, %1 : tensor<?xf32>, f32
}
// CHECK-LABEL: func.func @guarded
// CHECK:         device.device_copy
// CHECK:         cf.assert
// CHECK-NEXT:    call @guarded_opencl0_0
// CHECK-NEXT:    tensor.extract
