// RUN: devscope-opt %s --split-input-file -p 'device-plan{arguments=host},device-verify' | filecheck %s
// RUN: devscope-opt %s --split-input-file -p 'device-plan{arguments=host},device-plan{arguments=host},device-verify' | filecheck %s

// A launch is one computation: what it reads and what it starts from come by copies, results go by copies; its
// sizes are the host's. The kernel stays as it is.
#dev = #device.scope<"opencl", 0 : i64, "", "">
// CHECK:      func.func private @kernel(%{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>) attributes {device.kernel} {
func.func private @kernel(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  return
}
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %b: index) -> tensor<?xf32> {
  // CHECK-DAG:  %[[X:.*]] = device.device_copy %arg0 from #cpu0 to #opencl0
  // CHECK-DAG:  %[[Y:.*]] = device.device_copy %arg1 from #cpu0 to #opencl0
  // CHECK:      %[[N:.*]] = tensor.dim %arg0, %{{.*}} : tensor<?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // CHECK-NEXT: %[[R:.*]] = "device.launch"(%[[N]], %{{.*}}, %{{.*}}, %arg2, %{{.*}}, %{{.*}}) ({
  // CHECK-NEXT:   "device.in"(%[[X]])
  // CHECK-NEXT:   "device.out"(%[[Y]])
  // CHECK-NEXT: }) {device.scope = #opencl0, kernel = @kernel}
  // CHECK-NEXT: %[[C:.*]] = device.device_copy %[[R]] from #opencl0 to #cpu0
  %0 = "device.launch"(%n, %c1, %c1, %b, %c1, %c1) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%y) : (tensor<?xf32>) -> ()
  }) {kernel = @kernel, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xf32>
  // CHECK-NEXT: math.tanh %[[C]]
  %1 = math.tanh %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// What is made again wherever it is needed is made in front of the launch. A frame places launches, too.
#dev = #device.scope<"opencl", 1 : i64, "", "">
func.func private @kernel(%x: memref<8xf32>, %y: memref<8xf32>) attributes {device.kernel} {
  return
}
// CHECK-LABEL: func.func @fresh
func.func @fresh(%s: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  // CHECK:      %[[HERE:.*]] = linalg.fill {{.*}} -> tensor<8xf32>
  // CHECK:      %[[THERE:.*]] = linalg.fill {device.scope = #opencl1}
  // CHECK:      "device.launch"
  // CHECK-NEXT:   "device.in"(%[[THERE]])
  // CHECK-NEXT:   "device.out"(%[[E:.*]])
  // CHECK-NEXT: }) {device.scope = #opencl1, kernel = @kernel}
  %f = linalg.fill ins(%s : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = "device.region"() ({
    %1 = "device.launch"(%c1, %c1, %c1, %c1, %c1, %c1) ({
      "device.in"(%f) : (tensor<8xf32>) -> ()
      "device.out"(%e) : (tensor<8xf32>) -> ()
    }) {kernel = @kernel} : (index, index, index, index, index, index) -> tensor<8xf32>
    "device.yield"(%1) : (tensor<8xf32>) -> ()
  }) {scope = #dev} : () -> tensor<8xf32>
  %2 = math.exp %f : tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
