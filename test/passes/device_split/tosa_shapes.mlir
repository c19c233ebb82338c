// RUN: devscope-opt %s -p 'device-plan{default=cpu:0 arguments=host},device-verify,device-split,device-verify-split' | filecheck %s
// A shape of TOSA is known where it is used, also in other blocks than its own: no function takes one.

#dev = #device.scope<"opencl", 0 : i64, "", "">

// CHECK-LABEL: func.func @main
// CHECK: func.func private @main_opencl0_0(%{{.*}}: tensor<2x1x1xf32> {device.scope = #opencl0})
// CHECK: tosa.const_shape
// CHECK: tosa.tile
func.func @main(%p: i1, %y: tensor<2x1x1xf32>) -> tensor<6x3x3xf32> {
  %s = tosa.const_shape {values = dense<3> : tensor<3xindex>} : () -> !tosa.shape<3>
  %r = scf.if %p -> tensor<6x3x3xf32> {
    %t = tosa.tile %y, %s {device.scope = #dev} : (tensor<2x1x1xf32>, !tosa.shape<3>) -> tensor<6x3x3xf32>
    scf.yield %t : tensor<6x3x3xf32>
  } else {
    %e = tensor.empty() : tensor<6x3x3xf32>
    scf.yield %e : tensor<6x3x3xf32>
  }
  return %r : tensor<6x3x3xf32>
}
