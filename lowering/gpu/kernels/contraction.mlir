// C[b, m, n] = the sum over k of A[b, m, k] * B[b, k, n], or C[b, m, n] += it.
//
// A workgroup computes a tile of rows and columns, each work-item a part of it, in registers. Some steps of k at a time
// are in local memory, as lines of elements along m and n: while these are used, the next ones are on their way. There
// are two tiles of each operand, so that one barrier is enough. What is beyond the edges is read from an element that
// exists; beyond the last step of k it counts as zero.
func.func private @${NAME}(${PARAMETERS}) {
  ${SIZES}
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %workgroup = arith.constant ${THREADS} : index
  %down = arith.ceildivui %M, %rows : index
  %across = arith.ceildivui %N, %columns : index
  %tiles = arith.muli %down, %across : index
  %blocks = arith.muli %tiles, %batch : index
  %only = arith.constant 1 : index
  gpu.launch blocks(%block, %block_y, %block_z) in (%grid = %blocks, %grid_y = %only, %grid_z = %only)
      threads(%thread, %thread_y, %thread_z) in (%group = %workgroup, %group_y = %only, %group_z = %only)
      workgroup(%tiles_a : ${TILES_A}, %tiles_b : ${TILES_B}) {
    ${SIZES_INSIDE}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %depth = arith.constant ${DEPTH} : index
    %tile_rows = arith.constant ${ROWS} : index
    %tile_columns = arith.constant ${COLUMNS} : index
    %zero_of_a = arith.constant ${ZERO_OF_A} : ${ELEMENT_OF_A}
    %zero_of_b = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
    %tiles_down = arith.ceildivui %inside_M, %tile_rows : index
    %tiles_across = arith.ceildivui %inside_N, %tile_columns : index
    %in_batch = arith.muli %tiles_down, %tiles_across : index
    %b = arith.divui %block, %in_batch : index
    %tile = arith.remui %block, %in_batch : index
    // Workgroups that follow each other read the same columns.
    %tile_column = arith.divui %tile, %tiles_down : index
    %tile_row = arith.remui %tile, %tiles_down : index
    %first_row = arith.muli %tile_row, %tile_rows : index
    %first_column = arith.muli %tile_column, %tile_columns : index
    %last_row = arith.subi %inside_M, %c1 : index
    %last_column = arith.subi %inside_N, %c1 : index
    %last_k = arith.subi %inside_K, %c1 : index
    ${PREPARE}
    %is_some = arith.cmpi ne, %inside_K, %c0 : index
    ${READ_FIRST}
    ${NO_SUMS}
    ${ALL_SUMS} = scf.for %k0 = %c0 to %inside_K step %depth iter_args(${CARRIED}) -> (${TYPES_CARRIED}) {
      %step = arith.divui %k0, %depth : index
      %turn = arith.remui %step, %c2 : index
      ${STORE}
      gpu.barrier
      %at_k = arith.addi %k0, %depth : index
      ${READ}
      ${MULTIPLY}
      scf.yield ${YIELDED} : ${TYPES_CARRIED}
    }
    ${END}
    gpu.terminator
  }
  return
}
