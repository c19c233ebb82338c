// RUN: devscope-opt %s -p 'device-split{targets=opencl:1=cpu}' | filecheck %s

// Targets differ between devices of one module; an override builds one of them for the host; a target that
// stands on a function already is never overwritten.

#d0 = #device.scope<"opencl", 0 : i64, "", "">
#d1 = #device.scope<"opencl", 1 : i64, "", "">
#fast = #device.scope<"opencl", 2 : i64, #device.target<"opencl", {workgroup = 64 : i64}>, "">
func.func @main(%x: tensor<4xf32> {device.scope = #d0}, %y: tensor<4xf32> {device.scope = #d1},
                %z: tensor<4xf32> {device.scope = #fast})
    -> (tensor<4xf32> {device.scope = #d0}, tensor<4xf32> {device.scope = #d1},
        tensor<4xf32> {device.scope = #fast}) {
  %0 = math.tanh %x {device.scope = #d0} : tensor<4xf32>
  %1 = math.tanh %y {device.scope = #d1} : tensor<4xf32>
  %2 = math.tanh %z {device.scope = #fast} : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:     func.func private @main_opencl0_0
// CHECK-SAME:  device.target = #device.target<"opencl", {}>
// CHECK:     func.func private @main_opencl1_0
// CHECK-SAME:  device.target = #device.target<"cpu", {}>
// CHECK:     func.func private @main_opencl2_0
// CHECK-SAME:  device.target = #device.target<"opencl", {workgroup = 64 : i64}>

func.func @bound(%x: tensor<4xf32> {device.scope = #device.scope<"cpu", 0 : i64, "", "">})
    attributes {device.target = #device.target<"cpu", {opt = 1 : i64}>} {
  return
}
// CHECK:     func.func @bound
// CHECK-SAME:  device.target = #device.target<"cpu", {opt = 1 : i64}>
