// contraction.mlir for the few rows of A that a block has. B, whose last axis is n, is read once and where it is:
// ${STEPS} rows of it side by side, all their columns that a task has. These rows are ${APART} apart if
// a task has whole rows, so that what is read after each stands behind it in memory. %sums[b, m, n] holds what is added up so far.
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
  %blocks = arith.muli %parts, %batch : index
  %behind = arith.remui %K, %together : index
  %in_parts = arith.subi %K, %behind : index
  %far = arith.constant ${APART} : index
  %has_rows = arith.cmpi ule, %N, %part : index
  %most_apart = arith.select %has_rows, %far, %1 : index
  %of_group = arith.muli %together, %most_apart : index
  scf.parallel (%task) = (%0) to (%blocks) step (%1) {
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    %width = arith.subi %j_end, %j_begin : index
    %at_edge = arith.remui %width, %columns : index
    %j_whole = arith.subi %j_end, %at_edge : index
    %all = arith.constant ${ROWS} : index
    scf.for %at = %0 to %all step %1 {
      scf.for %column = %j_begin to %j_end step %columns {
        vector.store %zeros, %sums[%b, %at, %column] : memref<?x?x?x${SUM}>, ${LINE}
      }
    }
    ${PANEL_OF_A}
    scf.for %group = %0 to %in_parts step %of_group {
      %left = arith.subi %in_parts, %group : index
      %possible = arith.divui %left, %together : index
      %apart = arith.minui %possible, %most_apart : index
      %next = arith.addi %group, %apart : index
      scf.for %k0 = %group to %next step %1 {
        ${READ_ALL_A}
        scf.for %column = %j_begin to %j_whole step %columns {
          %sums0 = vector.transfer_read %sums[%b, %0, %column], %zero {in_bounds = [true, true]} : memref<?x?x?x${SUM}>, ${BLOCK}
          ${ADD_ALL}
          vector.transfer_write %sums${STEPS}, %sums[%b, %0, %column] {in_bounds = [true, true]} : ${BLOCK}, memref<?x?x?x${SUM}>
        }
        // What is behind the last whole block is computed step by step, by less code.
        scf.for %column = %j_whole to %j_end step %columns {
          %begun = vector.transfer_read %sums[%b, %0, %column], %zero {in_bounds = [true, true]} : memref<?x?x?x${SUM}>, ${BLOCK}
          %steps_end = arith.muli %together, %apart : index
          %k_end = arith.addi %k0, %steps_end : index
          %ended = scf.for %k = %k0 to %k_end step %apart iter_args(%so_far = %begun) -> (${BLOCK}) {
            ${READ_A}
            ${ADD}
            scf.yield %more : ${BLOCK}
          }
          vector.transfer_write %ended, %sums[%b, %0, %column] {in_bounds = [true, true]} : ${BLOCK}, memref<?x?x?x${SUM}>
        }
      }
    }
    scf.for %k = %in_parts to %K step %1 {
      ${READ_A}
      scf.for %column = %j_begin to %j_end step %columns {
        %so_far = vector.transfer_read %sums[%b, %0, %column], %zero {in_bounds = [true, true]} : memref<?x?x?x${SUM}>, ${BLOCK}
        ${ADD}
        vector.transfer_write %more, %sums[%b, %0, %column] {in_bounds = [true, true]} : ${BLOCK}, memref<?x?x?x${SUM}>
      }
    }
    scf.for %at = %0 to %M step %1 {
      scf.for %column = %j_begin to %j_end step %columns {
        %part_sums = vector.load %sums[%b, %at, %column] : memref<?x?x?x${SUM}>, ${LINE}
        ${END}
      }
    }
    scf.reduce
  }
  return
}
