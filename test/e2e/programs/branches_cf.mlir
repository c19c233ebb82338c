// Unstructured control flow: a counted loop of cf.cond_br around device work, left early by a second exit.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %steps: i32, %stop: i32) -> (tensor<?xf32>, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  cf.br ^header(%x, %zero : tensor<?xf32>, i32)
^header(%t: tensor<?xf32>, %i: i32):
  %more = arith.cmpi slt, %i, %steps : i32
  cf.cond_br %more, ^body, ^exit(%t, %i : tensor<?xf32>, i32)
^body:
  %0 = math.cos %t {device.scope = #dev} : tensor<?xf32>
  %1 = arith.addf %0, %x {device.scope = #dev} : tensor<?xf32>
  %next = arith.addi %i, %one : i32
  %stopped = arith.cmpi eq, %next, %stop : i32
  cf.cond_br %stopped, ^early(%1 : tensor<?xf32>), ^header(%1, %next : tensor<?xf32>, i32)
^early(%u: tensor<?xf32>):
  %2 = arith.negf %u : tensor<?xf32>
  cf.br ^exit(%2, %next : tensor<?xf32>, i32)
^exit(%result: tensor<?xf32>, %count: i32):
  return %result, %count : tensor<?xf32>, i32
}
