// Kernels of the program's own: launches stand among other work of devices and host.
#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#wg = #gpu.address_space<workgroup>

// y += a * x, with a guard for the tail.
func.func private @saxpy(%a: f32, %x: memref<?xf32>, %n: index, %y: memref<?xf32>) attributes {device.kernel} {
  %i = gpu.global_id x
  %in = arith.cmpi ult, %i, %n : index
  scf.if %in {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %a, %0 : f32
    %2 = memref.load %y[%i] : memref<?xf32>
    %3 = arith.addf %1, %2 : f32
    memref.store %3, %y[%i] : memref<?xf32>
  }
  return
}

// The initial value is an argument, which stays as it is; work of the host follows.
func.func @main(%a: f32, %x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = arith.constant 16 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %g = arith.ceildivui %n, %b : index
  %r = "device.launch"(%g, %c1, %c1, %b, %c1, %c1) ({
    "device.in"(%a) : (f32) -> ()
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.in"(%n) : (index) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %s = math.tanh %r : tensor<?xf32>
  %t = arith.subf %r, %y {device.scope = #dev} : tensor<?xf32>
  return %s, %t : tensor<?xf32>, tensor<?xf32>
}

// Sums of blocks, by a tree in local memory; the workgroup's size is an argument.
func.func private @block_sums(%x: memref<?xf32>, %n: index, %sums: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %d = gpu.block_dim x
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #wg>
  %partial = memref.view %bytes[%c0][%d] : memref<?xi8, #wg> to memref<?xf32, #wg>
  %o = arith.muli %b, %d : index
  %i = arith.addi %o, %t : index
  %in = arith.cmpi ult, %i, %n : index
  %v = scf.if %in -> f32 {
    %0 = memref.load %x[%i] : memref<?xf32>
    scf.yield %0 : f32
  } else {
    scf.yield %zero : f32
  }
  memref.store %v, %partial[%t] : memref<?xf32, #wg>
  gpu.barrier
  %half = arith.shrui %d, %c1 : index
  %end = scf.while (%s = %half) : (index) -> index {
    %go = arith.cmpi ugt, %s, %c0 : index
    scf.condition(%go) %s : index
  } do {
  ^bb0(%s: index):
    %mine = arith.cmpi ult, %t, %s : index
    scf.if %mine {
      %j = arith.addi %t, %s : index
      %p = memref.load %partial[%t] : memref<?xf32, #wg>
      %q = memref.load %partial[%j] : memref<?xf32, #wg>
      %r = arith.addf %p, %q : f32
      memref.store %r, %partial[%t] : memref<?xf32, #wg>
    }
    gpu.barrier
    %next = arith.shrui %s, %c1 : index
    scf.yield %next : index
  }
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    %0 = memref.load %partial[%c0] : memref<?xf32, #wg>
    memref.store %0, %sums[%b] : memref<?xf32>
  }
  return
}

func.func @reduction(%x: tensor<?xf32>, %log: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = arith.shli %c1, %log : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %g = arith.ceildivui %n, %b : index
  %bytes = arith.muli %b, %c4 : index
  %e = tensor.empty(%g) : tensor<?xf32>
  %r = "device.launch"(%g, %c1, %c1, %b, %c1, %c1, %bytes) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.in"(%n) : (index) -> ()
    "device.out"(%e) : (tensor<?xf32>) -> ()
  }) {kernel = @block_sums, device.scope = #dev}
    : (index, index, index, index, index, index, index) -> tensor<?xf32>
  %f = arith.addf %r, %r {device.scope = #dev} : tensor<?xf32>
  %h = math.sin %r : tensor<?xf32>
  return %f, %h : tensor<?xf32>, tensor<?xf32>
}

// Tiles of 8 x 8 in local memory of static size.
func.func private @tiles(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %ta = memref.alloca() : memref<8x8xf32, #wg>
  %tb = memref.alloca() : memref<8x8xf32, #wg>
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  %n = memref.dim %b, %c1 : memref<?x?xf32>
  %x = gpu.thread_id x
  %y = gpu.thread_id y
  %i = gpu.global_id y
  %j = gpu.global_id x
  %row = arith.cmpi ult, %i, %m : index
  %column = arith.cmpi ult, %j, %n : index
  %sum = scf.for %t = %c0 to %k step %c8 iter_args(%acc = %zero) -> f32 {
    %ka = arith.addi %t, %x : index
    %kb = arith.addi %t, %y : index
    %ina = arith.cmpi ult, %ka, %k : index
    %inb = arith.cmpi ult, %kb, %k : index
    %hasa = arith.andi %row, %ina : i1
    %hasb = arith.andi %column, %inb : i1
    %va = scf.if %hasa -> f32 {
      %0 = memref.load %a[%i, %ka] : memref<?x?xf32>
      scf.yield %0 : f32
    } else {
      scf.yield %zero : f32
    }
    %vb = scf.if %hasb -> f32 {
      %0 = memref.load %b[%kb, %j] : memref<?x?xf32>
      scf.yield %0 : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %va, %ta[%y, %x] : memref<8x8xf32, #wg>
    memref.store %vb, %tb[%y, %x] : memref<8x8xf32, #wg>
    gpu.barrier
    %new = scf.for %s = %c0 to %c8 step %c1 iter_args(%p = %acc) -> f32 {
      %0 = memref.load %ta[%y, %s] : memref<8x8xf32, #wg>
      %1 = memref.load %tb[%s, %x] : memref<8x8xf32, #wg>
      %2 = math.fma %0, %1, %p : f32
      scf.yield %2 : f32
    }
    gpu.barrier
    scf.yield %new : f32
  }
  %in = arith.andi %row, %column : i1
  scf.if %in {
    memref.store %sum, %c[%i, %j] : memref<?x?xf32>
  }
  return
}

// The same kernel on two devices, in terms of shapes that come from the host and from the other device.
func.func @matmuls(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %w: tensor<?x?xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %gx = arith.ceildivui %n, %c8 : index
  %gy = arith.ceildivui %m, %c8 : index
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = "device.launch"(%gx, %gy, %c1, %c8, %c8, %c1) ({
    "device.in"(%a) : (tensor<?x?xf32>) -> ()
    "device.in"(%b) : (tensor<?x?xf32>) -> ()
    "device.out"(%e) : (tensor<?x?xf32>) -> ()
  }) {kernel = @tiles, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?x?xf32>
  %t = math.exp %r {device.scope = #dev} : tensor<?x?xf32>
  %rows = tensor.dim %t, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %w, %c1 : tensor<?x?xf32>
  %hx = arith.ceildivui %columns, %c8 : index
  %hy = arith.ceildivui %rows, %c8 : index
  %f = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %s = "device.launch"(%hx, %hy, %c1, %c8, %c8, %c1) ({
    "device.in"(%t) : (tensor<?x?xf32>) -> ()
    "device.in"(%w) : (tensor<?x?xf32>) -> ()
    "device.out"(%f) : (tensor<?x?xf32>) -> ()
  }) {kernel = @tiles, device.scope = #other} : (index, index, index, index, index, index) -> tensor<?x?xf32>
  return %r, %s : tensor<?x?xf32>, tensor<?x?xf32>
}

// out[i] = in[n - 1 - i]: not for one buffer.
func.func private @reverse(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %i = gpu.block_id x
  %last = arith.subi %n, %c1 : index
  %j = arith.subi %last, %i : index
  %v = memref.load %x[%j] : memref<?xf32>
  memref.store %v, %y[%i] : memref<?xf32>
  return
}

func.func @same_tensor(%x: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %y = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %r = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%y) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @reverse, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %s = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%r) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @reverse, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %d = arith.subf %s, %y {device.scope = #dev} : tensor<?xf32>
  %z = math.sin %x {device.scope = #dev} : tensor<?xf32>
  %t = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%z) : (tensor<?xf32>) -> ()
    "device.out"(%z) : (tensor<?xf32>) -> ()
  }) {kernel = @reverse, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %one = arith.constant 1.0 : f32
  %u = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%one) : (f32) -> ()
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.in"(%n) : (index) -> ()
    "device.out"(%t) : (tensor<?xf32>) -> ()
  }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %v = arith.mulf %t, %u {device.scope = #dev} : tensor<?xf32>
  return %r, %d, %t, %u, %v : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// Scalars of all kinds, results of several types, a grid-stride loop in three dimensions of work-items.
func.func private @kinds(%flag: i1, %small: i8, %i: i32, %l: i64, %h: f16, %d: f64, %x: memref<?xi32>, %ints: memref<?xi32>,
                         %floats: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %tz = gpu.thread_id z
  %bx = gpu.block_dim x
  %by = gpu.block_dim y
  %bz = gpu.block_dim z
  %group = gpu.block_id y
  %groups = gpu.grid_dim y
  %0 = arith.muli %tz, %by : index
  %1 = arith.addi %0, %ty : index
  %2 = arith.muli %1, %bx : index
  %3 = arith.addi %2, %tx : index
  %4 = arith.muli %bx, %by : index
  %items = arith.muli %4, %bz : index
  %5 = arith.muli %group, %items : index
  %start = arith.addi %5, %3 : index
  %step = arith.muli %groups, %items : index
  %s32 = arith.extsi %small : i8 to i32
  %l32 = arith.trunci %l : i64 to i32
  %sum = arith.addi %s32, %l32 : i32
  %h32 = arith.extf %h : f16 to f32
  %d32 = arith.truncf %d : f64 to f32
  %chosen = arith.select %flag, %h32, %d32 : f32
  scf.for %j = %start to %n step %step {
    %v = memref.load %x[%j] : memref<?xi32>
    %w = arith.muli %v, %i : i32
    %u = arith.addi %w, %sum : i32
    memref.store %u, %ints[%j] : memref<?xi32>
    %old = memref.load %floats[%j] : memref<?xf32>
    %new = arith.mulf %old, %chosen : f32
    memref.store %new, %floats[%j] : memref<?xf32>
  }
  return
}

func.func @types(%flag: i1, %small: i8, %i: i32, %l: i64, %h: f16, %d: f64, %x: tensor<?xi32>, %y: tensor<?xf32>)
    -> (tensor<?xi32>, tensor<?xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %r, %s = "device.launch"(%c1, %c3, %c1, %c4, %c3, %c2) ({
    "device.in"(%flag) : (i1) -> ()
    "device.in"(%small) : (i8) -> ()
    "device.in"(%i) : (i32) -> ()
    "device.in"(%l) : (i64) -> ()
    "device.in"(%h) : (f16) -> ()
    "device.in"(%d) : (f64) -> ()
    "device.in"(%x) : (tensor<?xi32>) -> ()
    "device.out"(%x) : (tensor<?xi32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @kinds, device.scope = #dev}
    : (index, index, index, index, index, index) -> (tensor<?xi32>, tensor<?xf32>)
  return %r, %s : tensor<?xi32>, tensor<?xf32>
}

// Launches in a loop that carries their result on the device, and in one that brings it to the host every time.
func.func @loops(%x: tensor<?xf32>, %y: tensor<?xf32>, %steps: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %b = arith.constant 8 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %g = arith.ceildivui %n, %b : index
  %r = scf.for %i = %c0 to %steps step %c1 iter_args(%z = %y) -> tensor<?xf32> {
    %0 = "device.launch"(%g, %c1, %c1, %b, %c1, %c1) ({
      "device.in"(%half) : (f32) -> ()
      "device.in"(%x) : (tensor<?xf32>) -> ()
      "device.in"(%n) : (index) -> ()
      "device.out"(%z) : (tensor<?xf32>) -> ()
    }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  }
  %s = scf.for %i = %c0 to %steps step %c1 iter_args(%z = %y) -> tensor<?xf32> {
    %0 = math.tanh %z : tensor<?xf32>
    %1 = "device.launch"(%g, %c1, %c1, %b, %c1, %c1) ({
      "device.in"(%half) : (f32) -> ()
      "device.in"(%x) : (tensor<?xf32>) -> ()
      "device.in"(%n) : (index) -> ()
      "device.out"(%0) : (tensor<?xf32>) -> ()
    }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
    %2 = arith.addf %1, %x : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  return %r, %s : tensor<?xf32>, tensor<?xf32>
}

// Parts of tensors, constants, and sizes that the program knows and the kernel does not.
func.func @parts(%x: tensor<24xf32>, %many: i1) -> (tensor<24xf32>, tensor<24xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %groups = arith.select %many, %c20, %c0 : index
  %two = arith.constant 2.0 : f32
  %w = arith.constant dense<[0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15., 16., 17., 18., 19.]>
    : tensor<20xf32>
  %y = math.exp %x {device.scope = #dev} : tensor<24xf32>
  %part = tensor.extract_slice %y[2] [20] [1] : tensor<24xf32> to tensor<20xf32>
  %r = "device.launch"(%groups, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%two) : (f32) -> ()
    "device.in"(%w) : (tensor<20xf32>) -> ()
    "device.in"(%c20) : (index) -> ()
    "device.out"(%part) : (tensor<20xf32>) -> ()
  }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<20xf32>
  %s = tensor.insert_slice %r into %y[2] [20] [1] {device.scope = #dev} : tensor<20xf32> into tensor<24xf32>
  %t = "device.launch"(%c20, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%two) : (f32) -> ()
    "device.in"(%part) : (tensor<20xf32>) -> ()
    "device.in"(%c20) : (index) -> ()
    "device.out"(%w) : (tensor<20xf32>) -> ()
  }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<20xf32>
  %u = tensor.insert_slice %t into %x[3] [20] [1] {device.scope = #dev} : tensor<20xf32> into tensor<24xf32>
  return %s, %u : tensor<24xf32>, tensor<24xf32>
}

// A function that two devices run, with a kernel of several blocks. An assertion in a kernel is dropped, functions
// over scalars are inlined.
func.func private @larger(%x: f32, %y: f32) -> f32 {
  %0 = arith.cmpf ogt, %x, %y : f32
  %1 = arith.select %0, %x, %y : f32
  return %1 : f32
}
func.func private @magnitude(%x: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %0 = arith.cmpf olt, %x, %zero : f32
  cf.cond_br %0, ^negative, ^done(%x : f32)
^negative:
  %1 = arith.negf %x : f32
  %2 = func.call @larger(%1, %x) : (f32, f32) -> f32
  cf.br ^done(%2 : f32)
^done(%r: f32):
  return %r : f32
}
func.func private @blocks(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  %i = gpu.global_id x
  %in = arith.cmpi ult, %i, %n : index
  cf.cond_br %in, ^inside, ^done
^inside:
  %a = memref.load %x[%i] : memref<?xf32>
  %b = memref.load %y[%i] : memref<?xf32>
  %c = arith.addf %a, %b : f32
  %zero = arith.constant 0.0 : f32
  %positive = arith.cmpf ogt, %c, %zero : f32
  cf.assert %positive, "not positive"
  %d = func.call @magnitude(%c) : (f32) -> f32
  memref.store %d, %y[%i] : memref<?xf32>
  cf.br ^done
^done:
  return
}
func.func private @anywhere(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %g = arith.ceildivui %n, %c8 : index
  %r = "device.launch"(%g, %c1, %c1, %c8, %c1, %c1) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @blocks} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @functions(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %0 = func.call @anywhere(%x, %y) {device.scope = #dev} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = func.call @anywhere(%x, %0) {device.scope = #other} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// Copies in, launches and copies out of a loop overlap.
func.func @pipelined(%x: tensor<24xf32>) -> tensor<24xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<24xf32>
  %r = scf.for %i = %c0 to %c24 step %c4 iter_args(%out = %e) -> tensor<24xf32> {
    %part = tensor.extract_slice %x[%i] [4] [1] : tensor<24xf32> to tensor<4xf32>
    %0 = "device.launch"(%c1, %c1, %c1, %c4, %c1, %c1) ({
      "device.in"(%two) : (f32) -> ()
      "device.in"(%part) : (tensor<4xf32>) -> ()
      "device.in"(%c4) : (index) -> ()
      "device.out"(%part) : (tensor<4xf32>) -> ()
    }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<4xf32>
    %1 = math.tanh %0 : tensor<4xf32>
    %2 = tensor.insert_slice %1 into %out[%i] [4] [1] : tensor<4xf32> into tensor<24xf32>
    scf.yield %2 : tensor<24xf32>
  }
  return %r : tensor<24xf32>
}

// Launches in branches and loops of device functions.
func.func @branches(%x: tensor<?xf32>, %f: i1, %steps: index) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %r = scf.if %f -> tensor<?xf32> {
    %0 = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
      "device.in"(%one) : (f32) -> ()
      "device.in"(%x) : (tensor<?xf32>) -> ()
      "device.in"(%n) : (index) -> ()
      "device.out"(%e) : (tensor<?xf32>) -> ()
    }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  } else {
    scf.yield %e : tensor<?xf32>
  }
  %s = scf.for %i = %c0 to %steps step %c1 iter_args(%z = %e) -> tensor<?xf32> {
    %q = scf.if %f -> tensor<?xf32> {
      %0 = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
        "device.in"(%one) : (f32) -> ()
        "device.in"(%e) : (tensor<?xf32>) -> ()
        "device.in"(%n) : (index) -> ()
        "device.out"(%z) : (tensor<?xf32>) -> ()
      }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
      scf.yield %0 : tensor<?xf32>
    } else {
      %0 = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
        "device.in"(%one) : (f32) -> ()
        "device.in"(%z) : (tensor<?xf32>) -> ()
        "device.in"(%n) : (index) -> ()
        "device.out"(%z) : (tensor<?xf32>) -> ()
      }) {kernel = @saxpy, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
      scf.yield %0 : tensor<?xf32>
    }
    scf.yield %q : tensor<?xf32>
  }
  return %e, %r, %s : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// The memory of an initial value is used again once the result is there: not while that is needed.
func.func private @increment(%y: memref<8xf32>) attributes {device.kernel} {
  %one = arith.constant 1.0 : f32
  %i = gpu.block_id x
  %0 = memref.load %y[%i] : memref<8xf32>
  %1 = arith.addf %one, %0 : f32
  memref.store %1, %y[%i] : memref<8xf32>
  return
}
func.func @reused(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %two = arith.constant 2.0 : f32
  %e = math.exp %x {device.scope = #dev} : tensor<8xf32>
  %r = "device.launch"(%c8, %c1, %c1, %c1, %c1, %c1) ({
    "device.out"(%e) : (tensor<8xf32>) -> ()
  }) {kernel = @increment, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<8xf32>
  %f = linalg.fill {device.scope = #dev} ins(%two : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = arith.addf %f, %r {device.scope = #dev} : tensor<8xf32>
  %g = "device.launch"(%c8, %c1, %c1, %c1, %c1, %c1) ({
    "device.out"(%f) : (tensor<8xf32>) -> ()
  }) {kernel = @increment, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<8xf32>
  return %s, %g : tensor<8xf32>, tensor<8xf32>
}

// The name is one that another kernel could get. Kernels work on dense buffers: what is a part of a matrix is copied for them, and back.
func.func private @increment_kernel(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {device.kernel} {
  %i = gpu.block_id x
  %j = gpu.block_id y
  %0 = memref.load %x[%i, %j] : memref<?x?xf32>
  memref.store %0, %y[%j, %i] : memref<?x?xf32>
  return
}
func.func @blocks_of_matrices(%x: tensor<?x6xf32>, %w: tensor<9x?xf32>) -> tensor<9x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %e = math.exp %x {device.scope = #dev} : tensor<?x6xf32>
  %s = math.sin %w {device.scope = #dev} : tensor<9x?xf32>
  %a = tensor.extract_slice %e[0, 1] [%n, 4] [1, 1] : tensor<?x6xf32> to tensor<?x4xf32>
  %b = tensor.extract_slice %s[3, 0] [4, %n] [1, 1] : tensor<9x?xf32> to tensor<4x?xf32>
  %r = "device.launch"(%n, %c4, %c1, %c1, %c1, %c1) ({
    "device.in"(%a) : (tensor<?x4xf32>) -> ()
    "device.out"(%b) : (tensor<4x?xf32>) -> ()
  }) {kernel = @increment_kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<4x?xf32>
  %t = tensor.insert_slice %r into %s[3, 0] [4, %n] [1, 1] {device.scope = #dev} : tensor<4x?xf32> into tensor<9x?xf32>
  return %t : tensor<9x?xf32>
}
