// Copies that users and planner put where they run more often than they have to.
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">

// In and out in every iteration, of an inner loop and of a loop around it.
func.func @carried(%x: tensor<?xf32>, %steps: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %steps step %c1 iter_args(%p = %x) -> (tensor<?xf32>) {
    %1 = scf.for %j = %c0 to %steps step %c1 iter_args(%q = %p) -> (tensor<?xf32>) {
      %2 = "device.device_copy"(%q) {src = #host, dst = #first} : (tensor<?xf32>) -> tensor<?xf32>
      %3 = math.sin %2 {device.scope = #first} : tensor<?xf32>
      %4 = "device.device_copy"(%3) {src = #first, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
      scf.yield %4 : tensor<?xf32>
    }
    scf.yield %1 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// Two values that change places, in a loop that asks the device when to end; a branch in it.
func.func @passed_round(%x: tensor<?xf32>, %y: tensor<?xf32>, %steps: index, %flag: i1) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %limit = arith.constant 100.0 : f32
  %0:3 = scf.while (%p = %x, %q = %y, %i = %c0) : (tensor<?xf32>, tensor<?xf32>, index)
      -> (tensor<?xf32>, tensor<?xf32>, index) {
    %1 = "device.device_copy"(%p) {src = #host, dst = #second} : (tensor<?xf32>) -> tensor<?xf32>
    %2 = tensor.extract %1[%c0] {device.scope = #second} : tensor<?xf32>
    %3 = arith.cmpf olt, %2, %limit : f32
    %4 = arith.cmpi ult, %i, %steps : index
    %5 = arith.andi %3, %4 : i1
    scf.condition(%5) %p, %q, %i : tensor<?xf32>, tensor<?xf32>, index
  } do {
  ^bb0(%p: tensor<?xf32>, %q: tensor<?xf32>, %i: index):
    %1 = "device.device_copy"(%p) {src = #host, dst = #second} : (tensor<?xf32>) -> tensor<?xf32>
    %2 = "device.device_copy"(%q) {src = #host, dst = #second} : (tensor<?xf32>) -> tensor<?xf32>
    %3 = scf.if %flag -> tensor<?xf32> {
      %4 = arith.addf %1, %2 {device.scope = #second} : tensor<?xf32>
      %5 = "device.device_copy"(%4) {src = #second, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
      scf.yield %5 : tensor<?xf32>
    } else {
      %4 = arith.subf %1, %2 {device.scope = #second} : tensor<?xf32>
      %5 = "device.device_copy"(%4) {src = #second, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
      scf.yield %5 : tensor<?xf32>
    }
    %6 = arith.addi %i, %c1 : index
    scf.yield %q, %3, %6 : tensor<?xf32>, tensor<?xf32>, index
  }
  return %0#1 : tensor<?xf32>
}

// One copy for two of three cases; the third needs none.
func.func @switched(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %0 = math.absf %x {device.scope = #host} : tensor<?xf32>
  %1 = scf.index_switch %n -> tensor<?xf32>
  case 0 {
    %2 = math.tanh %0 {device.scope = #first} : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  case 1 {
    %2 = math.sin %0 {device.scope = #first} : tensor<?xf32>
    scf.yield %2 : tensor<?xf32>
  }
  default {
    scf.yield %0 : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
}

// The host works on one of two values of the loop; both sides of a branch copy the same.
func.func @mixed(%x: tensor<?xf32>, %w: tensor<?xf32>, %steps: index, %flag: i1) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%p = %x, %q = %x) -> (tensor<?xf32>, tensor<?xf32>) {
    %1 = "device.device_copy"(%p) {src = #host, dst = #first} : (tensor<?xf32>) -> tensor<?xf32>
    %2 = scf.if %flag -> tensor<?xf32> {
      %3 = "device.device_copy"(%w) {src = #host, dst = #first} : (tensor<?xf32>) -> tensor<?xf32>
      %4 = arith.mulf %1, %3 {device.scope = #first} : tensor<?xf32>
      scf.yield %4 : tensor<?xf32>
    } else {
      %3 = "device.device_copy"(%w) {src = #host, dst = #first} : (tensor<?xf32>) -> tensor<?xf32>
      %4 = math.sin %3 {device.scope = #first} : tensor<?xf32>
      scf.yield %4 : tensor<?xf32>
    }
    %5 = "device.device_copy"(%2) {src = #first, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
    %6 = math.cos %q {device.scope = #host} : tensor<?xf32>
    %7 = "device.device_copy"(%6) {src = #host, dst = #second} : (tensor<?xf32>) -> tensor<?xf32>
    %8 = math.sin %7 {device.scope = #second} : tensor<?xf32>
    %9 = "device.device_copy"(%8) {src = #second, dst = #host} : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %5, %9 : tensor<?xf32>, tensor<?xf32>
  }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}
