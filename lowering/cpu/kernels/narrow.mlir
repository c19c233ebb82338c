// contraction.mlir for the few rows of A that a block has. B, whose last axis is n, is read once and where it is:
// ${STEPS} rows of it side by side, all their columns that a task has. Where there is much of B, k is cut into parts too:
// %sums[part of k, b, m, n] holds what each has added up.
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
  %tasks = arith.muli %blocks, %parts_of_k : index
  %even = arith.ceildivui %K, %parts_of_k : index
  %groups = arith.ceildivui %even, %together : index
  %most_steps = arith.muli %groups, %together : index
  %is_whole = arith.cmpi eq, %parts_of_k, %1 : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %part_of_k = arith.divui %task, %blocks : index
    %block = arith.remui %task, %blocks : index
    %b = arith.divui %block, %parts : index
    %number = arith.remui %block, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    %k_wanted = arith.muli %part_of_k, %most_steps : index
    %k_begin = arith.minsi %k_wanted, %K : index
    %k_next = arith.addi %k_begin, %most_steps : index
    %k_end = arith.minsi %k_next, %K : index
    %k_all = arith.subi %k_end, %k_begin : index
    %behind = arith.remui %k_all, %together : index
    %in_parts = arith.subi %k_end, %behind : index
    %all = arith.constant ${ROWS} : index
    scf.for %at = %0 to %all step %1 {
      scf.for %column = %j_begin to %j_end step %columns {
        vector.store %zeros, %sums[%part_of_k, %b, %at, %column] : memref<?x?x?x?x${SUM}>, ${LINE}
      }
    }
    ${PANEL_OF_A}
    scf.for %k0 = %k_begin to %in_parts step %together {
      ${READ_ALL_A}
      scf.for %column = %j_begin to %j_end step %columns {
        %sums0 = vector.transfer_read %sums[%part_of_k, %b, %0, %column], %zero {in_bounds = [true, true]} : memref<?x?x?x?x${SUM}>, ${BLOCK}
        ${ADD_ALL}
        vector.transfer_write %sums${STEPS}, %sums[%part_of_k, %b, %0, %column] {in_bounds = [true, true]} : ${BLOCK}, memref<?x?x?x?x${SUM}>
      }
    }
    scf.for %k0 = %in_parts to %k_end step %1 {
      ${READ_A}
      scf.for %column = %j_begin to %j_end step %columns {
        %sums0 = vector.transfer_read %sums[%part_of_k, %b, %0, %column], %zero {in_bounds = [true, true]} : memref<?x?x?x?x${SUM}>, ${BLOCK}
        ${ADD}
        vector.transfer_write %sums1, %sums[%part_of_k, %b, %0, %column] {in_bounds = [true, true]} : ${BLOCK}, memref<?x?x?x?x${SUM}>
      }
    }
    scf.if %is_whole {
      scf.for %at = %0 to %M step %1 {
        scf.for %column = %j_begin to %j_end step %columns {
          %part_sums = vector.load %sums[%part_of_k, %b, %at, %column] : memref<?x?x?x?x${SUM}>, ${LINE}
          ${END}
        }
      }
    }
    scf.reduce
  }
  %enders = arith.select %is_whole, %0, %blocks : index
  scf.parallel (%task) = (%0) to (%enders) step (%1) {
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    scf.for %at = %0 to %M step %1 {
      scf.for %column = %j_begin to %j_end step %columns {
        %part_sums = scf.for %part_of_k = %0 to %parts_of_k step %1 iter_args(%so_far = %zeros) -> (${LINE}) {
          %of_part = vector.load %sums[%part_of_k, %b, %at, %column] : memref<?x?x?x?x${SUM}>, ${LINE}
          ${ADD_LINES}
          scf.yield %more : ${LINE}
        }
        ${END}
      }
    }
    scf.reduce
  }
  return
}
