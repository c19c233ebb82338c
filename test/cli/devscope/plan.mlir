// The same plan as IR, as a table (one line per row when piped), and with another default.

// RUN: devscope plan %s | filecheck %s
// RUN: devscope plan %s --table | filecheck %s --check-prefix=TABLE
// RUN: devscope plan %s --table --default opencl:0 | filecheck %s --check-prefix=DEVICE

#dev = #device.scope<"opencl", 0 : i64, "", "">

// CHECK: #[[HOST:.*]] = #device.scope<"cpu", 0 : i64, "", "">
// CHECK: #[[DEV:.*]] = #device.scope<"opencl", 0 : i64, "", "">
// CHECK: func.func @main
// CHECK: %[[COPY:.*]] = device.device_copy %{{.*}} from #[[HOST]] to #[[DEV]]
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[COPY]] {device.scope = #[[DEV]]}
// CHECK-NEXT: %[[BACK:.*]] = device.device_copy %[[EXP]] from #[[DEV]] to #[[HOST]]
// CHECK-NEXT: math.tanh %[[BACK]] : tensor<8x4xf32>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = math.exp %x {device.scope = #dev} : tensor<8x4xf32>
  %1 = math.tanh %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// TABLE: {{^}}op {{ *}}at {{ *}}scope {{ *}}why{{$}}
// TABLE-NEXT: {{^}}math.exp   17:8  opencl:0  device.scope on 'math.exp' (17:8) says opencl:0{{$}}
// TABLE-NEXT: {{^}}math.tanh  18:8  cpu:0     {{.*[^ ]$}}
// TABLE: {{^}}copy of {{.*}} from {{.*}} to {{.*}} bytes {{ *}}times {{ *}}asked by{{$}}
// TABLE-NEXT: {{^}}%x {{ *}}cpu:0     opencl:0    128 {{ *}}x1  'math.exp' (17:8){{$}}
// TABLE-NEXT: {{^}}%0 {{ *}}opencl:0  cpu:0       128 {{ *}}x1  'math.tanh' (18:8){{$}}
// TABLE: {{^}}2 copies, 256 bytes{{$}}

// DEVICE: {{^}}math.tanh  18:8  opencl:0
// DEVICE: {{^}}2 copies, 256 bytes{{$}}
