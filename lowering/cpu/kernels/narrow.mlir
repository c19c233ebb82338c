// contraction.mlir for the few rows of A that a block has: B is read once and where it is. The last axis of B is n.
func.func private @${NAME}(${PARAMETERS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %zeros = arith.constant dense<${ZERO_OF_SUM}> : ${BLOCK}
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_column = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %columns = arith.constant ${COLUMNS} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %row = arith.constant 0 : index
  %k0 = arith.constant 0 : index
  %is_last = arith.constant true
  %is_first = arith.xori %adds, %is_last : i1
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %last_row = arith.subi %M, %1 : index
  %parts = arith.ceildivui %N, %part : index
  %tasks = arith.muli %parts, %batch : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %room = memref.alloca() {alignment = 64 : i64} : memref<${ROWS}x${COLUMNS}x${SUM}>
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    ${PANEL_OF_A}
    scf.for %column = %j_begin to %j_end step %columns {
      %sums = scf.for %k = %0 to %K step %1 iter_args(%so_far = %zeros) -> (${BLOCK}) {
        ${READ_A}
        %b_read = vector.transfer_read %B[%b, %k, %column], %no_column : ${B}, vector<${COLUMNS}x${ELEMENT_OF_B}>
        ${CONVERT_B}
        %more = vector.outerproduct %a, %b_row, %so_far : vector<${ROWS}x${SUM}>, vector<${COLUMNS}x${SUM}>
        scf.yield %more : ${BLOCK}
      }
      vector.transfer_write %sums, %room[%0, %0] {in_bounds = [true, true]} : ${BLOCK}, memref<${ROWS}x${COLUMNS}x${SUM}>
      scf.for %at = %0 to %M step %1 {
        %part_sums = vector.load %room[%at, %0] : memref<${ROWS}x${COLUMNS}x${SUM}>, ${LINE}
        ${END}
      }
    }
    scf.reduce
  }
  return
}
