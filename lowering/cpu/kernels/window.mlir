// Each element of the result from what a window covers at its place: pooling, and convolutions of which each channel
// of the result has one of the image. ${LANES} elements that stand side by side in the result are computed at once.
//
// A task computes a block of the result, row by row.
// %slots: how many tasks there are at most; %packed_x has a part for each, or is on its stack.
func.func private @${NAME}(${PARAMETERS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %nothing = arith.constant dense<${ZERO_OF_C}> : vector<${LANES}x${RESULT}>
  %no_x = arith.constant dense<${ZERO_OF_SUM}> : vector<${LANES}x${SUM}>
  ${CONSTANTS}
  %lanes = arith.constant ${LANES} : index
  ${BLOCKS}
  %workers = arith.minsi %slots, %blocks : index
  scf.parallel (%task) = (%0) to (%workers) step (%1) {
    ${MEMORY}
    scf.for %block = %task to %blocks step %workers {
      ${LOCATE}
      ${OUTER}
        ${HOISTED}
        ${INNER}
          %x_first = arith.addi %x_block, %x_behind : index
          %x_at = arith.addi %x_first, ${AT_V} : index
          %c_first = arith.addi %c_block, %c_behind : index
          %c_at = arith.addi %c_first, %v : index
          ${BEGIN}
          ${SUMS}
          ${END}
      ${CLOSE}
    }
    scf.reduce
  }
  return
}
