// contraction.mlir for the few rows of A that a block has: B is read once and where it is, in parts of ${STEPS} steps of
// k, whose rows of B are read side by side. The last axis of B is n.
func.func private @${NAME}(%A: ${A}, %B: ${B}, %C: ${C}${EXTRAS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_column = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %columns = arith.constant ${COLUMNS} : index
  %most_steps = arith.constant ${STEPS} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %row = arith.constant 0 : index
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %K = memref.dim %A, %${AXIS_OF_K} : ${A}
  %end = arith.maxsi %K, %1 : index
  %parts = arith.ceildivui %N, %part : index
  %tasks = arith.muli %parts, %batch : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    %C_ = memref.subview %C[%b, 0, 0] [1, %M, %N] [1, 1, 1] : ${C} to ${C_MATRIX}
    scf.for %k0 = %0 to %end step %most_steps {
      %k_rest = arith.subi %K, %k0 : index
      %steps = arith.minsi %k_rest, %most_steps : index
      %is_first = arith.cmpi eq, %k0, %0 : index
      %is_last = arith.cmpi sle, %k_rest, %most_steps : index
      %k_end = arith.addi %k0, %steps : index
      scf.for %column = %j_begin to %j_end step %columns {
        ${BEGIN}
        %sums = scf.for %k = %k0 to %k_end step %1 iter_args(%so_far = %begin) -> (${BLOCK}) {
          ${READ_A}
          %b_read = vector.transfer_read %B[%b, %k, %column], %no_column : ${B}, vector<${COLUMNS}x${ELEMENT_OF_B}>
          ${CONVERT_B}
          %more = vector.outerproduct %a, %b_row, %so_far : vector<${ROWS}x${SUM}>, vector<${COLUMNS}x${SUM}>
          scf.yield %more : ${BLOCK}
        }
        ${END}
      }
    }
    scf.reduce
  }
  return
}
