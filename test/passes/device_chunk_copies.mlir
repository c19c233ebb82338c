// RUN: devscope-opt %s --split-input-file -p 'device-plan{arguments=host},device-split,device-chunk-copies{chunks=3 least=0},device-verify,device-verify-split' | filecheck %s
// RUN: devscope-opt %s --split-input-file -p 'device-plan{arguments=host},device-split,device-chunk-copies{chunks=3}' | filecheck %s --check-prefix=SMALL
// RUN: devscope-opt %s --split-input-file -p 'device-plan{arguments=host},device-split,device-chunk-copies{chunks=3 least=0},device-pipeline-loops,device-verify,device-verify-split' | filecheck %s --check-prefix=PIPELINED
// RUN: not devscope-opt %s --split-input-file -p 'device-chunk-copies{chunks=0}' 2>&1 | filecheck %s --check-prefix=NONE

// NONE: error: 0 is not a number of chunks
// Where it is not known how many rows there are, the program decides.
// SMALL-NOT: _chunk
// SMALL: func.func @dynamic
// SMALL: @dynamic_opencl0_0_chunk

// Ten rows in three chunks of four: the last starts at row 6. All of the weights goes first, and once.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @layer(%x: tensor<10x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>) -> (tensor<10x6xf32>, tensor<10xf32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant dense<2.0> : tensor<10x4xf32>
  %e = tensor.empty() : tensor<10x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<10x6xf32>) -> tensor<10x6xf32>
  %d = tensor.empty() : tensor<10xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<10xf32>) -> tensor<10xf32>
  %0 = arith.mulf %x, %two {device.scope = #dev} : tensor<10x4xf32>
  %1 = linalg.matmul {device.scope = #dev} ins(%0, %w : tensor<10x4xf32>, tensor<4x6xf32>)
    outs(%f : tensor<10x6xf32>) -> tensor<10x6xf32>
  %2 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
    ins(%1, %b : tensor<10x6xf32>, tensor<6xf32>) outs(%e : tensor<10x6xf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<10x6xf32>
  %3 = linalg.reduce { arith.addf } ins(%2 : tensor<10x6xf32>) outs(%g : tensor<10xf32>) dimensions = [1]
    {device.scope = #dev}
  return %2, %3 : tensor<10x6xf32>, tensor<10xf32>
}
// CHECK-LABEL: func.func @layer
// CHECK-DAG:     [[W:%.*]] = device.device_copy %arg1 from
// CHECK-DAG:     [[B:%.*]] = device.device_copy %arg2 from
// CHECK-DAG:     [[SIX:%.*]] = arith.constant 6 : index
// CHECK-DAG:     [[ROWS:%.*]] = arith.constant 10 : index
// CHECK-DAG:     [[FOUR:%.*]] = arith.constant 4 : index
// CHECK-DAG:     [[C:%.*]] = tensor.empty() : tensor<10x6xf32>
// CHECK-DAG:     [[D:%.*]] = tensor.empty() : tensor<10xf32>
// CHECK:         [[LOOP:%.*]]:2 = scf.for [[I:%.*]] = {{%.*}} to [[ROWS]] step [[FOUR]] iter_args([[Y:%.*]] = [[C]], [[Z:%.*]] = [[D]])
// CHECK-NEXT:      [[START:%.*]] = arith.minsi [[I]], [[SIX]] : index
// CHECK-NEXT:      [[S:%.*]] = tensor.extract_slice %arg0[[[START]], 0] [4, 4] [1, 1] : tensor<10x4xf32> to tensor<4x4xf32>
// CHECK-NEXT:      [[X:%.*]] = device.device_copy [[S]] from
// CHECK-NEXT:      [[R:%.*]]:2 = func.call @layer_opencl0_0_chunk([[X]], [[W]], [[B]])
// CHECK-NEXT:      [[P:%.*]] = device.device_copy [[R]]#0 from
// CHECK-NEXT:      [[P1:%.*]] = tensor.insert_slice [[P]] into [[Y]][[[START]], 0] [4, 6] [1, 1]
// CHECK-NEXT:      [[Q:%.*]] = device.device_copy [[R]]#1 from
// CHECK-NEXT:      [[Q1:%.*]] = tensor.insert_slice [[Q]] into [[Z]][[[START]]] [4] [1]
// CHECK-NEXT:      scf.yield [[P1]], [[Q1]]
// CHECK:         return [[LOOP]]#0, [[LOOP]]#1
// CHECK-NOT:   func.func private @layer_opencl0_0(
// CHECK:       func.func private @layer_opencl0_0_chunk({{.*}}: tensor<4x4xf32> {{{.*}}}, {{.*}}: tensor<4x6xf32> {{{.*}}}, {{.*}}: tensor<6xf32> {{{.*}}}) -> (tensor<4x6xf32> {{{.*}}}, tensor<4xf32> {{{.*}}})
// CHECK-DAG:     arith.constant dense<2.000000e+00> : tensor<4x4xf32>
// CHECK-DAG:     linalg.matmul {{.*}} -> tensor<4x6xf32>

// PIPELINED-LABEL: func.func @layer
// PIPELINED:         call @layer_opencl0_0_chunk
// PIPELINED:         scf.for
// PIPELINED:           func.call @layer_opencl0_0_chunk
// PIPELINED-COUNT-4: tensor.insert_slice

// -----

// A row of the result takes all rows of the argument; a row asks for its number.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#id = affine_map<(i, j) -> (i, j)>
func.func @whole(%x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %zero = arith.constant dense<0.0> : tensor<9x9xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %x : tensor<9x9xf32>, tensor<9x9xf32>)
    outs(%zero : tensor<9x9xf32>) -> tensor<9x9xf32>
  return %0 : tensor<9x9xf32>
}
// CHECK-LABEL: func.func @whole
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @numbers(%x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %e = tensor.empty() : tensor<9x9xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<9x9xf32>) outs(%e : tensor<9x9xf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = arith.addf %p, %f : f32
    linalg.yield %s : f32
  } -> tensor<9x9xf32>
  return %0 : tensor<9x9xf32>
}
// CHECK-LABEL: func.func @numbers
// CHECK-NOT:     scf.for
// CHECK:         return

// -----

// What is computed from the weights alone is computed once, before the loop.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @weights(%x: tensor<9x8xf32>, %w: tensor<7x8xf32>, %s: f32) -> tensor<9x7xf32> {
  %zero = arith.constant dense<0.0> : tensor<9x7xf32>
  %e = tensor.empty() : tensor<8x7xf32>
  %u = math.exp %w {device.scope = #dev} : tensor<7x8xf32>
  %v = linalg.transpose ins(%u : tensor<7x8xf32>) outs(%e : tensor<8x7xf32>) permutation = [1, 0]
    {device.scope = #dev}
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %v : tensor<9x8xf32>, tensor<8x7xf32>)
    outs(%zero : tensor<9x7xf32>) -> tensor<9x7xf32>
  %1 = tensor.splat %s : tensor<9x7xf32>
  %2 = arith.mulf %0, %1 {device.scope = #dev} : tensor<9x7xf32>
  return %2 : tensor<9x7xf32>
}
// CHECK-LABEL: func.func @weights
// CHECK:         [[W:%.*]] = device.device_copy %arg1 from
// CHECK:         [[V:%.*]] = call @weights_opencl0_0_shared([[W]])
// CHECK:         scf.for
// CHECK:           [[X:%.*]] = device.device_copy
// CHECK:           func.call @weights_opencl0_0_chunk([[X]], %arg2, [[V]])
// CHECK:       func.func private @weights_opencl0_0_chunk
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.matmul
// CHECK-NOT:   func.func private @weights_opencl0_0(
// CHECK:       func.func private @weights_opencl0_0_shared({{.*}}: tensor<7x8xf32> {device.scope = #opencl0}) -> (tensor<8x7xf32> {device.scope = #opencl0})
// CHECK:         math.exp
// CHECK-NOT:     linalg.matmul

// -----

// Rows that go to another device, or come from there, stay whole.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
func.func @devices(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<6x4xf32>
  %1 = math.sin %x {device.scope = #other} : tensor<6x4xf32>
  %2 = math.cos %1 {device.scope = #dev} : tensor<6x4xf32>
  return %0, %1, %2 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}
// CHECK-LABEL: func.func @devices
// CHECK:         scf.for
// CHECK:         tensor.extract_slice %arg0[{{%.*}}, 0] [2, 4] [1, 1]
// CHECK:         call @devices_opencl0_{{[01]}}_chunk(
// CHECK-NOT:     scf.for
// CHECK:         return

// -----

// A function that is called twice, once with rows that the device has anyway.

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func private @f(%x: tensor<6x4xf32> {device.scope = #dev}) -> (tensor<6x4xf32> {device.scope = #dev}) {
  %0 = math.tanh %x : tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
func.func @twice(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = func.call @f(%x) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
func.func @again(%y: tensor<6x4xf32> {device.scope = #dev}) -> tensor<6x4xf32> {
  %0 = func.call @f(%y) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
// CHECK-LABEL: func.func private @f(
// CHECK-LABEL: func.func private @f_chunk(
// CHECK-LABEL: func.func @twice
// CHECK:         func.call @f_chunk
// CHECK-LABEL: func.func @again
// CHECK:         call @f(%arg0)
// CHECK:         return

// -----

// The number of rows is known at run time only: chunks are of computed size, the last one starts where it ends.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @dynamic(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.add {device.scope = #dev} ins(%x, %y : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>)
    -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @dynamic
// CHECK-DAG:     [[ONE:%.*]] = arith.constant 1 : index
// CHECK-DAG:     [[THREE:%.*]] = arith.constant 3 : index
// CHECK:         [[N:%.*]] = tensor.dim %arg0
// CHECK:         [[SHARE:%.*]] = arith.ceildivui [[N]], [[THREE]] : index
// CHECK:         [[ENOUGH:%.*]] = arith.maxui [[SHARE]], {{%.*}} : index
// CHECK:         [[PRESENT:%.*]] = arith.minui [[ENOUGH]], [[N]] : index
// CHECK:         [[ROWS:%.*]] = arith.maxui [[PRESENT]], {{%.*}} : index
// CHECK:         [[LAST:%.*]] = arith.subi [[N]], [[ROWS]] : index
// CHECK:         [[WHOLE:%.*]] = tensor.empty([[N]]) : tensor<?x4xf32>
// CHECK:         scf.for [[I:%.*]] = {{%.*}} to [[N]] step [[ROWS]] iter_args([[Y:%.*]] = [[WHOLE]])
// CHECK-NEXT:      [[START:%.*]] = arith.minsi [[I]], [[LAST]] : index
// CHECK-NEXT:      tensor.extract_slice %arg0[[[START]], 0] [[[ROWS]], 4] [1, 1]
// CHECK:           tensor.extract_slice %arg1[[[START]], 0] [[[ROWS]], 4] [1, 1]
// CHECK:           func.call @dynamic_opencl0_0_chunk({{%.*}}, {{%.*}}, [[ROWS]])
// CHECK:           tensor.insert_slice {{%.*}} into [[Y]][[[START]], 0] [[[ROWS]], 4] [1, 1]

// -----

// Two numbers of rows that nothing relates.

#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @unrelated(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<?x4xf32>
  %1 = math.tanh %y {device.scope = #dev} : tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}
// CHECK-LABEL: func.func @unrelated
// CHECK-NOT:     scf.for
// CHECK:         return
