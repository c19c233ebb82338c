// RUN: devscope-opt %s --split-input-file -p device-plan,device-bind-target | filecheck %s
// RUN: devscope-opt %s --split-input-file -p device-plan,device-bind-target,device-bind-target | filecheck %s
// RUN: devscope-opt %s --split-input-file -p device-plan,device-split,device-verify-split | filecheck %s --check-prefix=SPLIT
// RUN: devscope-opt %s --split-input-file -p device-plan,device-split,device-sccp,device-unused,device-merge,device-overlap,device-verify-split | filecheck %s --check-prefix=BORDER

// A kernel is for what launches it: the first device, and private copies for other devices and targets.
#one = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
#two = #device.scope<"opencl", 1 : i64, "", "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
func.func private @kernel(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
// CHECK:      func.func private @kernel(
// CHECK-SAME:   device.kernel, device.scope = #{{.*}}, device.target = #device.target<"opencl", {workgroup = 64 : i64}>}
// CHECK:      func.func private @kernel_opencl0(
// CHECK-SAME:   device.kernel, device.scope = #{{.*}}, device.target = #device.target<"opencl", {workgroup = 32 : i64}>}
// CHECK:      func.func private @kernel_opencl1(
// CHECK-SAME:   device.kernel, device.scope = #opencl1, device.target = #device.target<"opencl", {}>}
// CHECK-LABEL: func.func @main
// CHECK:      kernel = @kernel}
// CHECK:      kernel = @kernel_opencl1}
// CHECK:      kernel = @kernel_opencl0}
// CHECK:      kernel = @kernel}
func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #one} : (index, index, index, index, index, index) -> tensor<?xf32>
  %1 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%0) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #two} : (index, index, index, index, index, index) -> tensor<?xf32>
  %2 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%1) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #slim} : (index, index, index, index, index, index) -> tensor<?xf32>
  %3 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%2) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #one} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// -----

// A target that stands on a kernel stays, and chooses which side keeps the original.
#one = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 32 : i64}>, "">
func.func private @kernel(%x: memref<?xf32>)
    attributes {device.kernel, device.target = #device.target<"opencl", {workgroup = 32 : i64}>} {
  return
}
// CHECK:      func.func private @kernel(
// CHECK-SAME:   device.target = #device.target<"opencl", {workgroup = 32 : i64}>}
// CHECK:      func.func private @kernel_opencl0(
// CHECK-SAME:   device.target = #device.target<"opencl", {workgroup = 64 : i64}>}
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  // CHECK:      kernel = @kernel_opencl0}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #one} : (index, index, index, index, index, index) -> tensor<?xf32>
  // CHECK:      kernel = @kernel}
  %1 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%0) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #slim} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// If it is nobody's, all launch copies, and the original is idle.
#one = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
func.func private @kernel(%x: memref<?xf32>)
    attributes {device.kernel, device.target = #device.target<"opencl", {workgroup = 32 : i64}>} {
  return
}
// CHECK:      func.func private @kernel(
// CHECK-SAME:   {device.kernel, device.target = #device.target<"opencl", {workgroup = 32 : i64}>}
// CHECK:      func.func private @kernel_opencl0(
// CHECK-SAME:   device.target = #device.target<"opencl", {workgroup = 64 : i64}>}
// CHECK:      kernel = @kernel_opencl0}
func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #one} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Sizes in the caller's terms: what follows from arguments comes as a scalar, or is computed inside from what does;
// shapes of the device's own tensors are asked there. Kernels that nothing launches go.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @idle(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
func.func private @kernel(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
// SPLIT-NOT:   @idle
// SPLIT-LABEL: func.func @sizes
// SPLIT:         %[[N:.*]] = tensor.dim %{{.*}}
// SPLIT:         call @sizes_opencl0_0(%{{.*}}, %[[N]], %{{.*}}) {device.call = "launch"}
// SPLIT-LABEL: func.func private @sizes_opencl0_0
// SPLIT-SAME:    (%[[X:.*]]: tensor<?xf32> {device.scope = #opencl0}, %[[M:.*]]: index, %[[B:.*]]: index)
// SPLIT:         %[[E:.*]] = math.exp
// SPLIT:         %[[G:.*]] = arith.ceildivui %[[M]], %[[B]] : index
// SPLIT:         %[[OWN:.*]] = tensor.dim %[[X]]
// SPLIT:         "device.launch"(%[[G]], %[[OWN]], %{{.*}}, %[[B]], %{{.*}}, %{{.*}}) ({
// SPLIT-NEXT:      "device.out"(%[[E]])
func.func @sizes(%x: tensor<?xf32>, %y: tensor<?xf32>, %b: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = math.exp %y : tensor<?xf32>
  %n = tensor.dim %h, %c0 : tensor<?xf32>
  %g = arith.ceildivui %n, %b : index
  %e = math.exp %x {device.scope = #dev} : tensor<?xf32>
  %own = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = "device.launch"(%g, %own, %c1, %b, %c1, %c1) ({
    "device.out"(%e) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0, %h : tensor<?xf32>, tensor<?xf32>
}

// -----

// A launch whose results nobody uses goes, and with it, at the latest when programs are lowered, its kernel. Device
// functions that launch the same kernel in the same way are one.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @kernel(%x: memref<?xf32>) attributes {device.kernel} {
  return
}
// BORDER-LABEL: func.func @first
// BORDER:         call @first_opencl0_0
// BORDER-LABEL: func.func private @first_opencl0_0
// BORDER:         "device.launch"
// BORDER-NOT:     "device.launch"
// BORDER-LABEL: func.func @second
// BORDER:         call @first_opencl0_0
// BORDER-NOT:     "device.launch"
func.func @first(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  %1 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @second(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
