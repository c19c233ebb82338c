module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_80">, #rocdl.target] attributes {test.unit} {
    gpu.func @copy(%from: memref<?xf32>, %to: memref<?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %t = gpu.thread_id x
      %v = memref.load %from[%t] : memref<?xf32>
      gpu.barrier
      memref.store %v, %to[%t] : memref<?xf32>
      gpu.return
    }
  }
  func.func @host(%m: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%m : memref<?xf32>, %m : memref<?xf32>)
    return
  }
}
