// contraction.mlir for the few rows of A that a block has. B, whose last axis is n, is read once and where it is:
// ${STEPS} rows of it side by side, all their columns that a task has, the sums of which it keeps.
// The function itself is not optimised, which would take long: tasks do the work.
func.func private @${NAME}(${PARAMETERS}) attributes {llvm.no_inline, llvm.optimize_none} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %zeros = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_column = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %columns = arith.constant ${COLUMNS} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %together = arith.constant ${STEPS} : index
  %zero = arith.constant ${ZERO_OF_SUM} : ${SUM}
  %row = arith.constant 0 : index
  %is_last = arith.constant true
  %is_first = arith.xori %adds, %is_last : i1
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %last_row = arith.subi %M, %1 : index
  %parts = arith.ceildivui %N, %part : index
  %tasks = arith.muli %parts, %batch : index
  %behind = arith.remui %K, %together : index
  %in_parts = arith.subi %K, %behind : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %room = memref.alloca() {alignment = 64 : i64} : memref<${ROWS}x${PART_COLUMNS}x${SUM}>
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %rest = arith.subi %N, %j_begin : index
    %n = arith.minsi %rest, %part : index
    %all = arith.constant ${ROWS} : index
    scf.for %at = %0 to %all step %1 {
      scf.for %j = %0 to %n step %columns {
        vector.store %zeros, %room[%at, %j] : memref<${ROWS}x${PART_COLUMNS}x${SUM}>, ${LINE}
      }
    }
    ${PANEL_OF_A}
    scf.for %k0 = %0 to %in_parts step %together {
      ${READ_ALL_A}
      scf.for %j = %0 to %n step %columns {
        %column = arith.addi %j_begin, %j : index
        %sums0 = vector.transfer_read %room[%0, %j], %zero {in_bounds = [true, true]} : memref<${ROWS}x${PART_COLUMNS}x${SUM}>, ${BLOCK}
        ${ADD_ALL}
        vector.transfer_write %sums${STEPS}, %room[%0, %j] {in_bounds = [true, true]} : ${BLOCK}, memref<${ROWS}x${PART_COLUMNS}x${SUM}>
      }
    }
    scf.for %k0 = %in_parts to %K step %1 {
      ${READ_A}
      scf.for %j = %0 to %n step %columns {
        %column = arith.addi %j_begin, %j : index
        %sums0 = vector.transfer_read %room[%0, %j], %zero {in_bounds = [true, true]} : memref<${ROWS}x${PART_COLUMNS}x${SUM}>, ${BLOCK}
        ${ADD}
        vector.transfer_write %sums1, %room[%0, %j] {in_bounds = [true, true]} : ${BLOCK}, memref<${ROWS}x${PART_COLUMNS}x${SUM}>
      }
    }
    scf.for %at = %0 to %M step %1 {
      scf.for %j = %0 to %n step %columns {
        %column = arith.addi %j_begin, %j : index
        %part_sums = vector.load %room[%at, %j] : memref<${ROWS}x${PART_COLUMNS}x${SUM}>, ${LINE}
        ${END}
      }
    }
    scf.reduce
  }
  return
}
