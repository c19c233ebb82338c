// Every clash of a module is an error of its own, where the second of two demands meets the first; each step of
// both chains of reasons is a note where it stands.

// RUN: devscope-opt %s -p device-plan --split-input-file --verify-diagnostics

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// A layer was moved to the device, but one of its operations still carries the annotation of an earlier experiment.
func.func @layer(%x: tensor<64x784xf32>, %w: tensor<784x10xf32>) -> tensor<64x10xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x10xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x10xf32>) -> tensor<64x10xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x784xf32>, tensor<784x10xf32>) outs(%init : tensor<64x10xf32>) -> tensor<64x10xf32>
  // expected-note@+1 {{on opencl:0 because 'device.on_device' puts %0 on opencl:0}}
  %1 = "device.on_device"(%0) {scope = #dev} : (tensor<64x10xf32>) -> tensor<64x10xf32>
  // expected-error@+3 {{%0 must be on opencl:0 and on cpu:0}}
  // expected-note@+2 {{and on cpu:0 because 'device.on_device' puts %0 on cpu:0}}
  // expected-note@+1 {{one operation executes on one scope: drop one annotation}}
  %2 = "device.on_device"(%0) {scope = #host} : (tensor<64x10xf32>) -> tensor<64x10xf32>
  %3 = arith.addf %1, %2 : tensor<64x10xf32>
  return %3 : tensor<64x10xf32>
}

// A buffer that was allocated on the device is filled on the host, through a view.
func.func @buffer() {
  %one = arith.constant 1.0 : f32
  // expected-note@+1 {{and device.scope on 'memref.alloc' says opencl:0}}
  %all = memref.alloc() {device.scope = #dev} : memref<16xf32>
  // expected-note@+1 {{on opencl:0 because 'memref.subview' looks at %all}}
  %part = memref.subview %all[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  // expected-error@+1 {{%part must be on opencl:0 and on cpu:0}}
  linalg.fill {device.scope = #host} ins(%one : f32) outs(%part : memref<8xf32, strided<[1]>>)
  // expected-error@+1 {{%all must be on opencl:0 and on cpu:0}}
  linalg.fill {device.scope = #host} ins(%one : f32) outs(%all : memref<16xf32>)
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// The demand stands two calls away. What the innermost function demands is said there, and said once.
func.func private @write(%m: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  // expected-note@+2 {{and 'linalg.fill' uses %m}}
  // expected-note@+1 {{and device.scope on 'linalg.fill' says opencl:0}}
  linalg.fill {device.scope = #dev} ins(%one : f32) outs(%m : memref<16xf32>)
  return
}
func.func private @prepare(%m: memref<16xf32>) {
  // expected-note@+1 {{and 'func.call' uses @write, which has argument #0 on opencl:0}}
  call @write(%m) : (memref<16xf32>) -> ()
  return
}
func.func @main() {
  // expected-note@+1 {{on cpu:0 because device.scope on 'memref.alloc' says cpu:0}}
  %m = memref.alloc() {device.scope = #host} : memref<16xf32>
  // expected-error@+2 {{%m must be on cpu:0 and on opencl:0}}
  // expected-note@+1 {{and on opencl:0 because 'func.call' uses @prepare, which has argument #0 on opencl:0}}
  call @prepare(%m) : (memref<16xf32>) -> ()
  return
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// A library function keeps its data on the host; the call asks for it on the device.
// expected-note@+1 {{and device.scope on argument #0 of @log says cpu:0}}
func.func private @log(%x: tensor<4xf32> {device.scope = #host}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+2 {{'func.call' must be on cpu:0 and on opencl:0}}
  // expected-note@+1 {{drop device.scope from the call}}
  %0 = call @log(%x) {device.scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// One step of a parallel loop on each device: a parallel loop is one piece of work.
func.func @tiles(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.forall (%i) in (4) shared_outs(%s = %o) -> (tensor<4xf32>) {
    %p = tensor.extract_slice %x[%i] [1] [1] : tensor<4xf32> to tensor<1xf32>
    // expected-note@+1 {{on opencl:0 because device.scope on 'math.exp' says opencl:0}}
    %t = math.exp %p {device.scope = #dev} : tensor<1xf32>
    // expected-error@+2 {{'math.log' must be on opencl:0 and on cpu:0}}
    // expected-note@+1 {{place the loop as a whole, or move the operation out of it}}
    %u = math.log %t {device.scope = #host} : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %s[%i] [1] [1] : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %r : tensor<4xf32>
}
