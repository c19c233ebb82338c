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
// CHECK-NEXT:    [[IN:%.*]] = device.device_copy
// CHECK-NEXT:    [[FIRST:%.*]] = call @slices_opencl0_0([[IN]])
// CHECK-NEXT:    [[LOOP:%.*]]:2 = scf.for [[I:%.*]] = {{%.*}} to [[LAST]] step {{%.*}} iter_args([[SUM:%.*]] = %arg1, [[NOW:%.*]] = [[FIRST]])
// CHECK-NEXT:      [[NEXT:%.*]] = arith.addi [[I]]
// CHECK-NEXT:      [[SLICE:%.*]] = tensor.extract_slice %arg0[[[NEXT]], 0]
// CHECK-NEXT:      [[IN:%.*]] = device.device_copy [[SLICE]] from
// CHECK-NEXT:      [[BEGIN:%.*]] = func.call @slices_opencl0_0([[IN]])
// CHECK-NEXT:      [[OUT:%.*]] = device.device_copy [[NOW]] from
// CHECK-NEXT:      [[ADD:%.*]] = arith.addf [[SUM]], [[OUT]]
// CHECK-NEXT:      scf.yield [[ADD]], [[BEGIN]]
// CHECK:         [[OUT:%.*]] = device.device_copy [[LOOP]]#1 from
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
// CHECK-NEXT:      device.device_copy [[SUM]] from

// -----

// The number of iterations is not known: all of it is for the case that there is one.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @unknown(%x: tensor<8x4xf32> {device.scope = #host}, %a: tensor<4xf32> {device.scope = #host},
    %m: index, %n: index, %k: index) -> (tensor<4xf32> {device.scope = #host}) {
  %r = scf.for %i = %m to %n step %k iter_args(%sum = %a) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %p = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @unknown
// CHECK-SAME:    [[X:%[a-z0-9]+]]: tensor<8x4xf32> {{{.*}}}, [[A:%[a-z0-9]+]]: tensor<4xf32> {{{.*}}}, [[M:%[a-z0-9]+]]: index, [[N:%[a-z0-9]+]]: index, [[S:%[a-z0-9]+]]: index)
// CHECK-NOT:     device.device_copy
// CHECK:         [[RUNS:%.*]] = arith.cmpi slt, [[M]], [[N]] : index
// CHECK-NEXT:    [[TIMES:%.*]] = arith.select [[RUNS]], {{%.*}}, {{%.*}} : index
// CHECK-NEXT:    [[ONCE:%.*]] = scf.for {{%.*}} = {{%.*}} to [[TIMES]] step {{%.*}} iter_args([[INIT:%.*]] = [[A]])
// CHECK:           [[COUNT:%.*]] = arith.divui {{%.*}}, [[S]] : index
// CHECK-NEXT:      [[AHEAD:%.*]] = arith.muli [[COUNT]], [[S]] : index
// CHECK-NEXT:      [[LAST:%.*]] = arith.addi [[M]], [[AHEAD]] : index
// CHECK-NEXT:      [[SLICE:%.*]] = tensor.extract_slice [[X]][[[M]], 0]
// CHECK-NEXT:      [[IN:%.*]] = device.device_copy [[SLICE]] from
// CHECK-NEXT:      [[FIRST:%.*]] = func.call @unknown_opencl0_0([[IN]])
// CHECK-NEXT:      [[LOOP:%.*]]:2 = scf.for [[I:%.*]] = [[M]] to [[LAST]] step [[S]] iter_args([[SUM:%.*]] = [[INIT]], [[NOW:%.*]] = [[FIRST]])
// CHECK-NEXT:        [[NEXT:%.*]] = arith.addi [[I]], [[S]]
// CHECK-NEXT:        [[SLICE:%.*]] = tensor.extract_slice [[X]][[[NEXT]], 0]
// CHECK-NEXT:        [[IN:%.*]] = device.device_copy [[SLICE]] from
// CHECK-NEXT:        [[BEGIN:%.*]] = func.call @unknown_opencl0_0([[IN]])
// CHECK-NEXT:        [[OUT:%.*]] = device.device_copy [[NOW]] from
// CHECK-NEXT:        [[ADD:%.*]] = arith.addf [[SUM]], [[OUT]]
// CHECK-NEXT:        scf.yield [[ADD]], [[BEGIN]]
// CHECK:           [[OUT:%.*]] = device.device_copy [[LOOP]]#1 from
// CHECK-NEXT:      [[RESULT:%.*]] = arith.addf [[LOOP]]#0, [[OUT]]
// CHECK-NEXT:      scf.yield [[RESULT]]
// CHECK:         return [[ONCE]]

// -----

// Slices of dynamic size: what the second half asks about the device's result is asked about the carried one. What
// has effects stays in order: the second half of an iteration, then that of the next.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @log(index)
func.func @dynamic(%x: tensor<?xf32> {device.scope = #host}, %a: tensor<?xf32> {device.scope = #host}, %n: i32,
    %m: index) -> (tensor<?xf32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %r = scf.for %k = %zero to %n step %two iter_args(%rows = %a) -> (tensor<?xf32>) : i32 {
    %i = arith.index_cast %k : i32 to index
    %s = tensor.extract_slice %x[%i] [%m] [1] : tensor<?xf32> to tensor<?xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<?xf32>) -> tensor<?xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<?xf32>
    %l = tensor.dim %t, %c0 : tensor<?xf32>
    func.call @log(%l) : (index) -> ()
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
    %q = tensor.insert_slice %o into %rows[%i] [%l] [1] : tensor<?xf32> into tensor<?xf32>
    scf.yield %q : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
// CHECK-LABEL: func.func @dynamic
// CHECK:         scf.for {{%.*}} = {{%.*}} to {{%.*}} step {{%.*}} iter_args({{.*}}) -> (tensor<?xf32>) : i32 {
// CHECK-NOT:       @log
// CHECK:           scf.for [[K:%.*]] = {{%.*}} to {{%.*}} step {{%.*}} iter_args([[ROWS:%.*]] = {{%.*}}, [[NOW:%.*]] = {{%.*}}) -> (tensor<?xf32>, tensor<?xf32>) : i32 {
// CHECK-DAG:         [[I:%.*]] = arith.index_cast [[K]] : i32 to index
// CHECK-DAG:         [[L:%.*]] = tensor.dim [[NOW]]
// CHECK:             [[NEXT:%.*]] = func.call @dynamic_opencl0_0
// CHECK:             func.call @log([[L]])
// CHECK:             [[OUT:%.*]] = device.device_copy [[NOW]] from
// CHECK:             [[NEW:%.*]] = tensor.insert_slice [[OUT]] into [[ROWS]][[[I]]] [[[L]]]
// CHECK:             scf.yield [[NEW]], [[NEXT]]
// CHECK:           func.call @log

// -----

// Of loops inside each other, the inner one.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @nested(%x: tensor<8x8xf32> {device.scope = #host}, %a: tensor<f32> {device.scope = #host})
    -> (tensor<f32> {device.scope = #host}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%outer = %a) -> (tensor<f32>) {
    %q = scf.for %j = %c0 to %c8 step %c1 iter_args(%sum = %outer) -> (tensor<f32>) {
      %s = tensor.extract_slice %x[%i, %j] [1, 1] [1, 1] : tensor<8x8xf32> to tensor<f32>
      %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<f32>) -> tensor<f32>
      %t = math.tanh %d {device.scope = #dev} : tensor<f32>
      %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<f32>) -> tensor<f32>
      %p = arith.addf %sum, %o : tensor<f32>
      scf.yield %p : tensor<f32>
    }
    scf.yield %q : tensor<f32>
  }
  return %r : tensor<f32>
}
// CHECK-LABEL: func.func @nested
// CHECK-NOT:     @nested_opencl0_0
// CHECK:         scf.for {{.*}} -> (tensor<f32>) {
// CHECK:           func.call @nested_opencl0_0
// CHECK:           scf.for {{.*}} -> (tensor<f32>, tensor<f32>) {
// CHECK:             func.call @nested_opencl0_0
// CHECK-NOT:     @nested_opencl0_0
// CHECK:         return

// -----

// One iteration, bounds that compare unsigned, a step backwards: as they are.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @left(%x: tensor<8x4xf32> {device.scope = #host}, %a: tensor<4xf32> {device.scope = #host}, %n: index)
    -> (tensor<4xf32> {device.scope = #host}) {
  %back = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = scf.for %i = %c0 to %c1 step %c1 iter_args(%sum = %a) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %m = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  }
  %q = "scf.for"(%c0, %n, %c1, %p) <{unsignedCmp}> ({
  ^bb0(%i: index, %sum: tensor<4xf32>):
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %m = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  }) : (index, index, index, tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %n to %c0 step %back iter_args(%sum = %q) -> (tensor<4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %d = "device.device_copy"(%s) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %t = math.tanh %d {device.scope = #dev} : tensor<4xf32>
    %o = "device.device_copy"(%t) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    %m = arith.addf %sum, %o : tensor<4xf32>
    scf.yield %m : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @left
// CHECK-NOT:     device.device_copy
// CHECK:         scf.for {{.*}} -> (tensor<4xf32>) {
// CHECK:         scf.for unsigned {{.*}} -> (tensor<4xf32>) {
// CHECK:         scf.for {{.*}} -> (tensor<4xf32>) {
// CHECK-NOT:     scf.for
// CHECK:         return
