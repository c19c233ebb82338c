// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-plan,device-split

// No such function.

func.func private @other(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{'k' is launched, but the module has no such function}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A function over tensors is no kernel.

// expected-note @+1 {{it stands here}}
func.func private @k(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{'k' is launched, but is no kernel}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Nor is one without the mark.

// expected-note @+1 {{it stands here}}
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{'k' is launched, but is no kernel}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Kernels are private, have a body and return nothing.

// expected-error @+1 {{kernel 'k' must be private}}
func.func @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}

// -----

// expected-error @+1 {{kernel 'k' has no body}}
func.func private @k(%x: memref<?xf32>) attributes {device.kernel}

// -----

// expected-error @+1 {{kernel 'k' returns something}}
func.func private @k(%x: memref<?xf32>, %n: index) -> index attributes {device.kernel} {
  return %n : index
}

// -----

// Numbers of arguments and parameters.

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{the launch of 'k' has 2 arguments, the kernel has 1 parameters}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Element types, ranks, scalars, extents, layouts and memory spaces.

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<?xf64>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter memref<?xf64>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter memref<?x?xf32>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: f32, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter f32}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<8xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter memref<8xf32>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<?xf32, strided<[2]>>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter memref<?xf32, strided<[2]>>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-note @+1 {{the kernel stands here}}
func.func private @k(%x: memref<?xf32, 1>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{argument #0 of the launch of 'k' is tensor<?xf32>, its parameter memref<?xf32, 1 : i64>}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// What a kernel only reads it does not write, not through a view either.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %v = memref.load %y[%c0] : memref<?xf32>
  %part = memref.subview %x[1] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: 1>>
  // expected-error @+1 {{'memref.store' writes to parameter #0 of kernel 'k', which a launch only lets it read}}
  memref.store %v, %part[%c0] : memref<4xf32, strided<[1], offset: 1>>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    // expected-note @+1 {{'device.in' here; 'device.out' lets a kernel write}}
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Launched and called.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %m = memref.alloc(%n) : memref<?xf32>
  // expected-error @+1 {{'k' is launched as a kernel and called, too}}
  func.call @k(%m, %m) : (memref<?xf32>, memref<?xf32>) -> ()
  // expected-note @+1 {{it is launched here}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Launched, and a value.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{'k' is launched as a kernel and used as a value, too}}
  %f = func.constant @k : (memref<?xf32>, memref<?xf32>) -> ()
  // expected-note @+1 {{it is launched here}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @idle(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%m: memref<?xf32>) {
  // expected-error @+1 {{kernel 'idle' is called}}
  func.call @idle(%m) : (memref<?xf32>) -> ()
  return
}

// -----

// What only the host can do.

func.func private @print(f32)
func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf32>
  // expected-error @+1 {{kernel 'k' calls 'print', which kernels cannot}}
  func.call @print(%v) : (f32) -> ()
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-error @+1 {{'memref.alloc' cannot stand in kernel 'k', which runs on a device}}
  %m = memref.alloc() : memref<4xf32>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-error @+1 {{'vector.print' cannot stand in kernel 'k', which runs on a device}}
  vector.print str "here"
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-error @+1 {{'memref.copy' cannot stand in kernel 'k', which runs on a device}}
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-error @+1 {{'tensor.empty' cannot stand in kernel 'k', which runs on a device}}
  %t = tensor.empty() : tensor<4xf32>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-error @+1 {{'gpu.wait' cannot stand in kernel 'k', which runs on a device}}
  gpu.wait
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Kernels cannot be recursive.

func.func private @f(%x: f32) -> f32 {
  %0 = func.call @g(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @g(%x: f32) -> f32 {
  %0 = func.call @f(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @k(%x: memref<?xf32>, %v: f32) attributes {device.kernel} {
  // expected-error @+1 {{kernel 'k' calls 'g', which is recursive: g -> f -> g}}
  %0 = func.call @g(%v) : (f32) -> f32
  return
}

// -----

// Buffers flow through views only.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %go = arith.cmpi eq, %c0, %c0 : index
  // expected-error @+1 {{'arith.select' in a kernel hands buffers on}}
  %m = arith.select %go, %x, %y : memref<?xf32>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Dynamic local memory.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  // expected-note @+1 {{it is used here}}
  %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{kernel 'k' has dynamic local memory, but its launch does not say how much}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{the launch gives kernel 'k' local memory, which it does not use}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  // expected-error @+1 {{kernel 'k' asks for dynamic local memory twice}}
  %l = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  // expected-error @+1 {{kernel 'k' asks how large its dynamic local memory is}}
  %n = memref.dim %m, %c0 : memref<?xi8, #gpu.address_space<workgroup>>
  return
}

// -----

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  // expected-error @+1 {{kernel 'k' allocates memory whose size it computes}}
  %m = memref.alloca(%n) : memref<?xf32, #gpu.address_space<workgroup>>
  return
}

// -----

// The host runs no kernels.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // expected-error @+1 {{kernel 'k' is launched on cpu:0, whose target 'cpu' has no kernels}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @k}
    : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A parallel loop does not launch.

func.func private @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = scf.forall (%i) in (%n) shared_outs(%o = %y) -> tensor<?xf32> {
    // expected-error @+1 {{'device.launch' inside 'scf.forall': a parallel loop runs on one scope as a whole}}
    %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%o) : (tensor<?xf32>) -> ()
  }) {kernel = @k, device.scope = #device.scope<"opencl", 0 : i64, "", "">}
    : (index, index, index, index, index, index) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
