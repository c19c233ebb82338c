// xDSL counts one operand segment less than upstream.
func.func @f(%n: index, %m: memref<?xf32>, %v: f32) {
  %c1 = arith.constant 1 : index
  %token = gpu.wait async
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %v, %m[%bx] : memref<?xf32>
    gpu.terminator
  }
  gpu.wait [%token]
  return
}
