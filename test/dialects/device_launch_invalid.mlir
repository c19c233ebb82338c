// RUN: devscope-opt %s --split-input-file --verify-diagnostics -p device-plan

func.func @no_grid(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @+1 {{its operands are the sizes of the grid (x, y, z) and of a workgroup (x, y, z), and perhaps the bytes of local memory; it has 3}}
  %0 = "device.launch"(%n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sizes(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{operand 'sizes' at positions 0 to 5 does not verify}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (i32, i32, i32, i32, i32, i32) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @no_kernel(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @+1 {{attribute "kernel" is expected but not provided}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @other_results(%x: tensor<4xf32>, %n: index) -> tensor<8xf32> {
  // expected-error @+1 {{the results are (tensor<8xf32>), but what 'device.out' name is (tensor<4xf32>); they must be equal}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @computes(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @+1 {{the body holds 'device.in' and 'device.out', but no 'math.tanh'}}
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    %1 = math.tanh %x : tensor<4xf32>
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @buffer(%x: tensor<4xf32>, %m: memref<4xf32>, %n: index) -> tensor<4xf32> {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    // expected-error @+1 {{a kernel takes tensors and scalars, not memref<4xf32>}}
    "device.in"(%m) : (memref<4xf32>) -> ()
    "device.out"(%x) : (tensor<4xf32>) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scalar(%s: f32, %n: index) -> f32 {
  %0 = "device.launch"(%n, %n, %n, %n, %n, %n) ({
    // expected-error @+1 {{a kernel leaves results in tensors, not in f32}}
    "device.out"(%s) : (f32) -> ()
  }) {kernel = @k} : (index, index, index, index, index, index) -> f32
  return %0 : f32
}
