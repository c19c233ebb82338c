// A recursive function on tensors, and two mutually recursive ones on scalars.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @power(%x: tensor<?xf64>, %n: i32) -> tensor<?xf64> {
  %one = arith.constant 1 : i32
  %last = arith.cmpi sle, %n, %one : i32
  %0 = scf.if %last -> (tensor<?xf64>) {
    scf.yield %x : tensor<?xf64>
  } else {
    %less = arith.subi %n, %one : i32
    %1 = func.call @power(%x, %less) : (tensor<?xf64>, i32) -> tensor<?xf64>
    %2 = arith.mulf %1, %x {device.scope = #dev} : tensor<?xf64>
    scf.yield %2 : tensor<?xf64>
  }
  return %0 : tensor<?xf64>
}
func.func private @even(%n: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %done = arith.cmpi eq, %n, %zero : i32
  %0 = scf.if %done -> (i1) {
    scf.yield %true : i1
  } else {
    %less = arith.subi %n, %one : i32
    %1 = func.call @odd(%less) : (i32) -> i1
    scf.yield %1 : i1
  }
  return %0 : i1
}
func.func private @odd(%n: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %done = arith.cmpi eq, %n, %zero : i32
  %0 = scf.if %done -> (i1) {
    scf.yield %false : i1
  } else {
    %less = arith.subi %n, %one : i32
    %1 = func.call @even(%less) : (i32) -> i1
    scf.yield %1 : i1
  }
  return %0 : i1
}
func.func @main(%x: tensor<?xf64>, %n: i32) -> (tensor<?xf64>, i1) {
  %0 = call @power(%x, %n) : (tensor<?xf64>, i32) -> tensor<?xf64>
  %1 = call @even(%n) : (i32) -> i1
  return %0, %1 : tensor<?xf64>, i1
}
