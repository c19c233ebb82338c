// RUN: %python -m xdsl.tools.xdsl_opt %s --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

// CHECK: unknown device type 'tpu'; legal device types are: cpu, cuda, opencl, rocm
"test.op"() {device.scope = #device.scope<"tpu">} : () -> ()

// -----

// CHECK: target 'cuda' compiles for devices of type 'cuda', not 'cpu'; a scope on 'cpu' needs a target of that device type, or an open target
"test.op"() {device.scope = #device.scope<"cpu", 0, "cuda">} : () -> ()

// -----

// CHECK: a scope is written #device.scope<TYPE, ID, TARGET, MEMORY>
"test.op"() {device.scope = #device.scope<0, "cpu">} : () -> ()

// -----

// CHECK: unknown target kind 'metal'; legal target kinds are: cpu, cuda, opencl, rocm
"test.op"() {device.target = #device.target<"metal">} : () -> ()

// -----

// CHECK: unknown option 'sm' of target kind 'cuda'; legal options are: arch (str), calls (bool), ptx (str), tf32 (bool)
"test.op"() {device.target = #device.target<"cuda", {sm = 90}>} : () -> ()

// -----

// CHECK: device.on_device: a fully open scope constrains nothing; close one of its fields
%x = "test.op"() : () -> tensor<4xf32>
%0 = device.on_device %x on #device.scope<> : tensor<4xf32>

// -----

// CHECK: device.device_copy: 'dst' leaves the device type open; a copy needs both ends
%x = "test.op"() : () -> tensor<4xf32>
%0 = device.device_copy %x from #device.scope<"cpu"> to #device.scope<> : tensor<4xf32>

// -----

// CHECK: device.region: the body yields (tensor<4xf32>), but the results are (); they must be equal
%x = "test.op"() : () -> tensor<4xf32>
"device.region"() ({
  device.yield %x : tensor<4xf32>
}) {scope = #device.scope<"cpu">} : () -> ()
