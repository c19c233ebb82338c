// RUN: devscope-opt %s --split-input-file -p device-split | filecheck %s

// Two device operations with host work between them that neither needs: one piece.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @one_piece(%x: tensor<4xf32> {device.scope = #dev}, %h: tensor<4xf32> {device.scope = #host})
    -> (tensor<4xf32> {device.scope = #dev}, tensor<4xf32> {device.scope = #host}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  %1 = math.exp %h : tensor<4xf32>
  %2 = arith.addf %0, %x {device.scope = #dev} : tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @one_piece
// CHECK-SAME:    device.target = #device.target<"cpu", {}>
// CHECK:         [[D:%.*]] = call @one_piece_opencl0_0(%arg0) {device.call = "launch"} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[H:%.*]] = math.exp %arg1 : tensor<4xf32>
// CHECK-NEXT:    return [[D]], [[H]]
// CHECK:       func.func private @one_piece_opencl0_0(%arg0: tensor<4xf32> {device.scope = #opencl0})
// CHECK-SAME:    device.kernel, device.noalias, device.scope = #opencl0, device.target = #device.target<"opencl", {}>
// CHECK-NEXT:    [[T:%.*]] = math.tanh %arg0
// CHECK-NEXT:    [[A:%.*]] = arith.addf [[T]], %arg0
// CHECK-NEXT:    return [[A]]

// -----

// Host work in between that one piece feeds and the other needs: two pieces.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @two_pieces(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  %1 = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = math.exp %1 : tensor<4xf32>
  %3 = "device.device_copy"(%2) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = arith.addf %0, %3 {device.scope = #dev} : tensor<4xf32>
  return %4 : tensor<4xf32>
}
// CHECK-LABEL: func.func @two_pieces
// CHECK:         [[A:%.*]] = call @two_pieces_opencl0_0(%arg0)
// CHECK-NEXT:    [[B:%.*]] = device.device_copy [[A]] from
// CHECK-NEXT:    [[C:%.*]] = math.exp [[B]]
// CHECK-NEXT:    [[D:%.*]] = device.device_copy [[C]] from
// CHECK-NEXT:    [[E:%.*]] = call @two_pieces_opencl0_1([[A]], [[D]])
// CHECK-NEXT:    return [[E]]

// -----

// Shapes and scalars that only device work needs are computed inside the device function.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @shapes(%x: tensor<?x8xf32> {device.scope = #dev}, %n: index)
    -> (tensor<?x8xf32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x8xf32>
  %m = arith.addi %d, %n : index
  %e = tensor.empty(%m) {device.scope = #dev} : tensor<?x8xf32>
  %f = linalg.fill {device.scope = #dev} ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %f : tensor<?x8xf32>
}
// CHECK-LABEL: func.func @shapes
// CHECK-NEXT:    [[R:%.*]] = call @shapes_opencl0_0(%arg0, %arg1) {device.call = "launch"} : (tensor<?x8xf32>, index) -> tensor<?x8xf32>
// CHECK-NEXT:    return [[R]]
// CHECK:       func.func private @shapes_opencl0_0
// CHECK:         tensor.dim
// CHECK:         arith.addi
// CHECK:         tensor.empty
// CHECK:         linalg.fill

// -----

// A loop whose body lies on one device moves there as a whole; one with host work stays and calls.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @loops(%x: tensor<4xf32> {device.scope = #dev}, %n: index) -> (tensor<4xf32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %t = math.tanh %a {device.scope = #dev} : tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  %h = "device.device_copy"(%0) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h) -> tensor<4xf32> {
    %d = "device.device_copy"(%a) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.exp %d {device.scope = #dev} : tensor<4xf32>
    %b = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @loops
// CHECK:         [[L:%.*]] = call @loops_opencl0_0(%arg0, %arg1)
// CHECK:         device.device_copy [[L]] from
// CHECK:         scf.for
// CHECK:           device.device_copy
// CHECK-NEXT:      func.call @loops_opencl0_1
// CHECK-NEXT:      device.device_copy
// CHECK:       func.func private @loops_opencl0_0
// CHECK:         scf.for
// CHECK-NEXT:      math.tanh

// -----

// A private function that lies on one device as a whole is a device function already.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @layer(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @calls(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = func.call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func private @layer
// CHECK-SAME:    device.target = #device.target<"opencl", {}>
// CHECK-LABEL: func.func @calls
// CHECK-SAME:    device.target = #device.target<"cpu", {}>
// CHECK-NEXT:    call @layer

// -----

// Names that are taken are left alone.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @f_opencl0_0()
func.func @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func @f(
// CHECK:         call @f_opencl0_1

// -----

// A scalar read back from the device is a result of the device function.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @read_back(%x: tensor<4xf32> {device.scope = #dev}) -> f32 {
  %c0 = arith.constant 0 : index
  %0 = math.tanh %x {device.scope = #dev} : tensor<4xf32>
  %1 = tensor.extract %0[%c0] {device.scope = #dev} : tensor<4xf32>
  %2 = arith.addf %1, %1 : f32
  return %2 : f32
}
// CHECK-LABEL: func.func @read_back
// CHECK:         [[S:%.*]] = call @read_back_opencl0_0(%arg0) {device.call = "launch"} : (tensor<4xf32>) -> f32
// CHECK:         arith.addf [[S]], [[S]] : f32

// -----

// The shape of a tensor that lies elsewhere is asked for there, and passed as a number.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @shape_of_host_data(%x: tensor<?xf32> {device.scope = #host}) -> (tensor<?xf32> {device.scope = #dev}) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %y = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<?xf32>) -> tensor<?xf32>
  %e = tensor.empty(%d) {device.scope = #dev} : tensor<?xf32>
  %a = linalg.exp {device.scope = #dev} ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %a : tensor<?xf32>
}
// CHECK-LABEL: func.func @shape_of_host_data
// CHECK-DAG:     [[D:%.*]] = tensor.dim %arg0
// CHECK-DAG:     [[Y:%.*]] = device.device_copy %arg0 from
// CHECK:         call @shape_of_host_data_opencl0_0([[Y]], [[D]]) {device.call = "launch"} : (tensor<?xf32>, index) -> tensor<?xf32>
// CHECK:       func.func private @shape_of_host_data_opencl0_0
// CHECK-NOT:     tensor.dim

// -----

// A shape that both sides need is asked for on both.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @shape_of_device_data(%x: tensor<?xf32> {device.scope = #dev})
    -> (tensor<?xf32> {device.scope = #dev}, index) {
  %c0 = arith.constant 0 : index
  %y = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %d = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%d) {device.scope = #dev} : tensor<?xf32>
  %a = linalg.exp {device.scope = #dev} ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %a, %d : tensor<?xf32>, index
}
// CHECK-LABEL: func.func @shape_of_device_data
// CHECK-NEXT:    %c0 = arith.constant 0 : index
// CHECK-NEXT:    [[R:%.*]]:2 = call @shape_of_device_data_opencl0_0(%arg0) {device.call = "launch"} : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
// CHECK-NEXT:    [[D:%.*]] = tensor.dim
// CHECK-NEXT:    return
// CHECK:       func.func private @shape_of_device_data_opencl0_0
// CHECK:         math.exp
// CHECK:         tensor.dim
// CHECK:         linalg.exp

// -----

// What needs the host's work is not one piece with what needs only copies and views of arguments, and the device
// has the latter to do while the host works.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @beside_host_work(%x: tensor<4xf32>, %h: tensor<8xf32>) -> (tensor<4xf32> {device.scope = #dev}) {
  %0 = "device.device_copy"(%x) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = math.exp %0 {device.scope = #dev} : tensor<4xf32>
  %2 = tensor.extract_slice %h[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %3 = "device.device_copy"(%2) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = arith.mulf %1, %3 {device.scope = #dev} : tensor<4xf32>
  %5 = math.absf %2 : tensor<4xf32>
  %6 = "device.device_copy"(%5) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = arith.addf %4, %6 {device.scope = #dev} : tensor<4xf32>
  return %7 : tensor<4xf32>
}
// CHECK-LABEL: func.func @beside_host_work
// CHECK:         [[P:%.*]] = call @beside_host_work_opencl0_0({{.*}}) {device.call = "launch"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[H:%.*]] = math.absf
// CHECK-NEXT:    [[C:%.*]] = device.device_copy [[H]] from
// CHECK-NEXT:    [[Q:%.*]] = call @beside_host_work_opencl0_1([[P]], [[C]]) {device.call = "launch"}
// CHECK-NEXT:    return [[Q]]
// CHECK:       func.func private @beside_host_work_opencl0_0
// CHECK:         math.exp
// CHECK:         arith.mulf
// CHECK:       func.func private @beside_host_work_opencl0_1
// CHECK:         arith.addf
