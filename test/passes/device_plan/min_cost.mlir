// Completion min-cost: what is expensive moves to where it is fast, if that is worth the copies.
// RUN: devscope-opt %s -p 'device-plan{arguments=host completion=min-cost machine=%S/Inputs/fast_device.toml},device-verify' | filecheck %s
// RUN: devscope-opt %s -p 'device-plan{arguments=host completion=min-cost machine=%S/Inputs/fast_device.toml}' > %t.once
// RUN: devscope-opt %t.once -p 'device-plan{arguments=host completion=min-cost machine=%S/Inputs/fast_device.toml}' > %t.twice
// RUN: diff %t.once %t.twice
// RUN: not devscope-opt %s -p 'device-plan{machine=%S/Inputs/fast_device.toml}' 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not devscope-opt %s -p 'device-plan{completion=min-cost machine=none.toml}' 2>&1 | filecheck %s --check-prefix=ABSENT

// ALONE: a machine description is for completion 'min-cost' only
// ABSENT: cannot read the machine description 'none.toml': No such file or directory

!large = tensor<512x512xf32>
!small = tensor<4x4xf32>

// The product pays for its copies. The sum before it stays, one copy is less than two; the one after it moves along.
// CHECK-LABEL: func.func @product
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<512x512xf32>
// CHECK-NEXT:    %[[THERE:.*]] = device.device_copy %[[SUM]] from
// CHECK:         %[[P:.*]] = linalg.matmul {device.scope = #opencl0} ins(%[[THERE]], %[[THERE]]
// CHECK-NEXT:    %[[LAST:.*]] = arith.addf %[[THERE]], %[[P]] {device.scope = #opencl0}
// CHECK-NEXT:    %[[BACK:.*]] = device.device_copy %[[LAST]] from
// CHECK-NEXT:    return %[[BACK]]
func.func @product(%a: !large, %b: !large) -> !large {
  %e = tensor.empty() : !large
  %0 = arith.addf %a, %b : !large
  %1 = linalg.matmul ins(%0, %0 : !large, !large) outs(%e : !large) -> !large
  %2 = arith.addf %0, %1 : !large
  return %2 : !large
}

// A small product does not.
// CHECK-LABEL: func.func @small_product
// CHECK-NOT:     opencl
// CHECK:         return
func.func @small_product(%a: !small) -> !small {
  %e = tensor.empty() : !small
  %0 = linalg.matmul ins(%a, %a : !small, !small) outs(%e : !small) -> !small
  return %0 : !small
}

// In a loop, what is carried stays on the device; it is copied before and after.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[A:.*]] = device.device_copy
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %[[A]])
// CHECK-NOT:       device.device_copy
// CHECK:           linalg.matmul {device.scope = #opencl0} ins(%[[X]], %[[A]]
// CHECK-NOT:       device.device_copy
// CHECK:         }
// CHECK-NEXT:    %[[BACK:.*]] = device.device_copy %[[R]] from
// CHECK-NEXT:    return %[[BACK]]
func.func @loop(%a: !large, %n: index) -> !large {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %e = tensor.empty() : !large
  %r = scf.for %i = %0 to %n step %1 iter_args(%x = %a) -> (!large) {
    %p = linalg.matmul ins(%x, %a : !large, !large) outs(%e : !large) -> !large
    scf.yield %p : !large
  }
  return %r : !large
}

// Demands hold, whatever they cost.
// CHECK-LABEL: func.func @demanded
// CHECK:         linalg.matmul ins
// CHECK:         return
func.func @demanded(%a: !large) -> !large {
  %e = tensor.empty() : !large
  %0 = linalg.matmul {device.scope = #device.scope<"cpu", 0 : i64, "", "">} ins(%a, %a : !large, !large) outs(%e : !large) -> !large
  return %0 : !large
}
