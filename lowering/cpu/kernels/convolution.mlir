// C[b, m, n] = the sum over k of image * filter: contraction.mlir with a matrix that is not in memory.
//
// One of the two matrices has a line for each pixel of the result, with what the filter covers there ("im2col"); only
// ${PIXELS} pixels and ${STEPS} steps of k of it are packed at a time, from where the elements are in the image, with
// ${OUTSIDE} for what is outside. First, for each pixel (or for pixels side by side) a table gets where its window
// begins. The other matrix, of filters, is packed once. A is packed as [m][k], in lines of ${LINE}; B as [k][n].
//
// %slots: how many tasks there are at most; %packed_x and %table have a part for each.
func.func private @${NAME}(
    %X: ${X}, ${INDICES}, %W: ${W}, %C: ${C}${EXTRAS}, %slots: index,
    %packed_w: memref<?x${SUM}>, %packed_x: memref<?x${SUM}>, %table: memref<?xindex>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_w = arith.constant ${ZERO_OF_W} : ${ELEMENT_OF_W}
  %pad = arith.constant dense<${ZERO_OF_X}> : vector<${LANES}x${ELEMENT_OF_X}>
  %lanes = arith.constant ${LANES} : index
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %most_steps = arith.constant ${STEPS} : index
  %line = arith.constant ${LINE} : index
  %pixels = arith.constant ${PIXELS} : index
  %width = arith.constant ${WIDTH} : index
  %record = arith.constant ${RECORD} : index
  %x_size = arith.constant ${X_SIZE} : index
  %t_size = arith.constant ${T_SIZE} : index
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %K = memref.dim %W, ${AXIS_OF_K} : ${W}
  // One sum of nothing is a sum, too: without a k there is one step, of length 0.
  %end = arith.maxsi %K, %1 : index
  %padded_m = arith.ceildivui %M, %rows : index
  %w_block = arith.muli %padded_m, %rows : index
  ${PACK_W}
  %p_blocks = arith.ceildivui ${P}, %pixels : index
  %blocks = arith.muli %p_blocks, %batch : index
  %workers = arith.minsi %slots, %blocks : index
  scf.parallel (%task) = (%0) to (%workers) step (%1) {
    %outside = arith.constant dense<${OUTSIDE}> : vector<${LANES}x${SUM}>
    %x_begin = arith.muli %task, %x_size : index
    %t_begin = arith.muli %task, %t_size : index
    scf.for %block = %task to %blocks step %workers {
      %b = arith.divui %block, %p_blocks : index
      %p_block = arith.remui %block, %p_blocks : index
      %p0 = arith.muli %p_block, %pixels : index
      %p_rest = arith.subi ${P}, %p0 : index
      %count = arith.minsi %p_rest, %pixels : index
      ${LOCATE}
      %C_ = memref.subview %C[%b, 0, 0] [1, %M, %N] [1, 1, 1] : ${C} to ${C_MATRIX}
      scf.for %k0 = %0 to %end step %most_steps {
        %k_rest = arith.subi %K, %k0 : index
        %steps = arith.minsi %k_rest, %most_steps : index
        %k_end = arith.addi %k0, %steps : index
        %is_first = arith.cmpi eq, %k0, %0 : index
        %is_last = arith.cmpi sle, %k_rest, %most_steps : index
        ${PACK_X}
        scf.for %j = %0 to ${J_END} step %columns {
          scf.for %i = %0 to ${I_END} step %rows {
            ${PANELS}
            %a_packed = memref.reinterpret_cast ${A_FROM} to offset: [%a_offset], sizes: [${ROWS}, ${LINE}], strides: [${LINE}, 1] : memref<?x${SUM}> to ${A_PANEL}
            %b_packed = memref.reinterpret_cast ${B_FROM} to offset: [%b_offset], sizes: [%most_steps, ${COLUMNS}], strides: [${COLUMNS}, 1] : memref<?x${SUM}> to ${B_PANEL}
            ${BEGIN}
            %sums = scf.for %k = %0 to %steps step %1 iter_args(%so_far = %begin) -> (${BLOCK}) {
              ${READ_A}
              %b_row = vector.load %b_packed[%k, %0] : ${B_PANEL}, vector<${COLUMNS}x${SUM}>
              %more = vector.outerproduct %a, %b_row, %so_far : vector<${ROWS}x${SUM}>, vector<${COLUMNS}x${SUM}>
              scf.yield %more : ${BLOCK}
            }
            ${END}
          }
        }
      }
    }
    scf.reduce
  }
  return
}
