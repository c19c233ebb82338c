// RUN: devscope plan %s --table --remarks 2>&1 | filecheck %s
// RUN: devscope plan %s --table --place %S/Inputs/devices.toml 2>&1 | filecheck %s --check-prefix=NUMBERS
// RUN: devscope run %s --random 0 --check --devices opencl:1=cpu:0 | filecheck %s --check-prefix=SAME

// What programs say of places in the words of XLA and MLIR is read; what is not read is a remark.

// CHECK: linalg.generic {{.*}} opencl:1 {{.*}}mhlo.sharding = {maximal device=2}
// CHECK-NEXT: linalg.generic {{.*}} cpu:0 {{.*}}_xla_compute_type = host
// CHECK-NEXT: linalg.generic {{.*}} opencl:0 {{.*}}xla.sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>
// CHECK-NEXT: linalg.generic {{.*}} cpu:0 {{.*}}mhlo.memory_kind = pinned_host
// CHECK: {{^}}remark: '#dlti.target_system_spec' says which device has which number, and places nothing by itself: 0 is cpu:0, 1 is opencl:0, 2 is opencl:1
// CHECK-DAG: remark: 'mhlo.sharding = {devices=[2,1]0,1}' is not of one device: it places nothing
// CHECK-DAG: remark: 'mhlo.sharding = {maximal device=7}' places nothing: of devices, 0 is cpu:0, 1 is opencl:0, 2 is opencl:1; say more
// CHECK-DAG: remark: '_xla_compute_type = sparse' is a place that is not known
// CHECK-DAG: remark: '_xla_buffer_placement = shelf' is a memory that is not known
// CHECK-DAG: remark: '_xla_stream' is not read

// NUMBERS: linalg.generic {{.*}} opencl:1 {{.*}}mhlo.sharding = {maximal device=2}
// SAME: check: result0 agrees

module attributes {
  mhlo.frontend_attributes = {xla.sdy.meshes = "{one = #sdy.mesh<[], device_ids=[1]>, two = #sdy.mesh<[\22x\22=2]>}"},
  dlti.target_system_spec = #dlti.target_system_spec<
    "CPU" = #dlti.target_device_spec<"L1_cache_size_in_bytes" = 4096 : i32>,
    "GPU" = #dlti.target_device_spec<"device_id" = 1 : i32>,
    "opencl:1" = #dlti.target_device_spec<"device_id" = 2 : i32>>
} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2,1]0,1}"}) -> (tensor<4xf32> {mhlo.memory_kind = "pinned_host"}) {
    %0 = stablehlo.exponential %x {mhlo.sharding = "{maximal device=2}"} : tensor<4xf32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.tanh %1 {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : tensor<4xf32>
    %3 = stablehlo.custom_call @annotate_device_placement(%2) {mhlo.frontend_attributes = {_xla_buffer_placement = "shelf"}} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = stablehlo.sine %3 {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@one, []>]>", _xla_stream = "1"}} : tensor<4xf32>
    %5 = stablehlo.cosine %4 {mhlo.sharding = "{maximal device=7}", mhlo.frontend_attributes = {_xla_compute_type = "sparse"}} : tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}
