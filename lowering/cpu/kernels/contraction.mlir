// C[b, m, n] = the sum over k of A[b, m, k] * B[b, k, n]. With %adds: C[b, m, n] += it.
//
// The loops are those of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015): panels of ${ROWS} rows of A and of ${COLUMNS} columns of B are packed for at most ${STEPS}
// steps of k, and a block of ${ROWS} x ${COLUMNS} sums stays in registers while one panel of each is read. Packing
// brings every layout and element type to one form, so that there is one inner loop; what it writes behind the edges
// is read, and the sums that it gets into are not used.
//
// A step of the inner loop, a turn, is ${STEPS_AT_ONCE} of k. %slots: how many matrices of a batch are worked on
// at once; %packed_a and %packed_b have room for so many.
// The function itself is not optimised, which would take long: tasks do the work.
func.func private @${NAME}(${PARAMETERS}) attributes {llvm.no_inline, llvm.optimize_none} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %zeros = arith.constant dense<${ZERO_OF_SUM}> : ${BLOCK}
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_column = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %most_rows = arith.constant ${MOST_ROWS} : index
  %most_columns = arith.constant ${MOST_COLUMNS} : index
  %rows_at_once = arith.constant ${ROWS_AT_ONCE} : index
  %columns_at_once = arith.constant ${COLUMNS_AT_ONCE} : index
  %block_rows = arith.constant ${BLOCK_ROWS} : index
  %most_steps = arith.constant ${STEPS} : index
  %depth = arith.constant ${DEPTH} : index
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %last_row = arith.subi %M, %1 : index
  %k_most = arith.minsi %K, %most_steps : index
  %parts_of_k = arith.ceildivui %k_most, %depth : index
  %padded = arith.muli %parts_of_k, %depth : index
  %at_once = arith.constant ${STEPS_AT_ONCE} : index
  %most_turns = arith.divui %padded, %at_once : index
  %all_turns = arith.ceildivui %K, %at_once : index
  // Panels are an odd number of steps apart: of powers of two of them, all would begin in the same few sets of a cache.
  %apart = arith.ori %most_turns, %1 : index
  %a_panel = arith.muli %apart, %rows : index
  %b_panel = arith.muli %apart, %columns : index
  %m_most = arith.minsi %M, %most_rows : index
  %a_most = arith.ceildivui %m_most, %rows : index
  %a_size = arith.muli %a_most, %a_panel : index
  %n_most = arith.minsi %N, %most_columns : index
  %b_most = arith.ceildivui %n_most, %columns : index
  %b_size = arith.muli %b_most, %b_panel : index
  // A task computes ${BLOCK_ROWS} rows: all their columns, or a part of them where there are few rows.
  %part = arith.constant ${PART_COLUMNS} : index
  %many_rows = arith.constant ${MANY_ROWS} : index
  %few = arith.cmpi slt, %M, %many_rows : index
  %block_columns = arith.select %few, %part, %most_columns : index
  // One sum of nothing is a sum, too: without a k there is one step, of length 0.
  %end = arith.maxsi %K, %1 : index
  %mn = arith.muli %M, %N : index
  %each = arith.muli %mn, %end : index
  %work = arith.muli %each, %slots : index
  %little = arith.constant ${LITTLE} : index
  %is_little = arith.cmpi slt, %work, %little : index
  %most_tasks = arith.constant ${TASKS} : index
  %tasks = arith.select %is_little, %1, %most_tasks : index
  scf.for %from = %0 to %batch step %slots {
    %rest = arith.subi %batch, %from : index
    %together = arith.minsi %rest, %slots : index
    scf.for %n0 = %0 to %N step %columns_at_once {
      %n_rest = arith.subi %N, %n0 : index
      %n = arith.minsi %n_rest, %columns_at_once : index
      scf.for %k0 = %0 to %end step %most_steps {
        %k_rest = arith.subi %K, %k0 : index
        %steps = arith.minsi %k_rest, %most_steps : index
        %turns = arith.ceildivui %steps, %at_once : index
        %turns_before = arith.divui %k0, %at_once : index
        %is_begin = arith.cmpi eq, %k0, %0 : index
        %only = arith.constant true
        %keeps = arith.xori %adds, %only : i1
        %is_first = arith.andi %is_begin, %keeps : i1
        %is_last = arith.cmpi sle, %k_rest, %most_steps : index
        ${IS_PLAIN}
        scf.for %m0 = %0 to %M step %rows_at_once {
          %m_rest = arith.subi %M, %m0 : index
          %m = arith.minsi %m_rest, %rows_at_once : index
          %is_new = arith.cmpi eq, %m0, %0 : index
          ${PACK}
          // Blocks of rows differ by one panel at most: threads have about as much to do.
          %a_panels = arith.ceildivui %m, %rows : index
          %down = arith.ceildivui %m, %block_rows : index
          %across = arith.ceildivui %n, %block_columns : index
          %blocks = arith.muli %down, %across : index
          %to_compute = arith.muli %blocks, %together : index
          %workers = arith.minsi %tasks, %to_compute : index
          scf.parallel (%task) = (%0) to (%workers) step (%1) {
            %room = memref.alloca() {alignment = 64 : i64} : memref<${ROWS}x${COLUMNS}x${SUM}>
            ${ROOM_OF_B}
            scf.for %number = %task to %to_compute step %workers {
              %slot = arith.divui %number, %blocks : index
              %block = arith.remui %number, %blocks : index
              %b = arith.addi %from, %slot : index
              %block_row = arith.divui %block, %across : index
              %block_column = arith.remui %block, %across : index
              %panels_before = arith.muli %block_row, %a_panels : index
              %first_panel = arith.divui %panels_before, %down : index
              %i_begin = arith.muli %first_panel, %rows : index
              %panels_up_to = arith.addi %panels_before, %a_panels : index
              %next_panel = arith.divui %panels_up_to, %down : index
              %i_next = arith.muli %next_panel, %rows : index
              %i_end = arith.minsi %i_next, %m : index
              %j_begin = arith.muli %block_column, %block_columns : index
              %j_next = arith.addi %j_begin, %block_columns : index
              %j_end = arith.minsi %j_next, %n : index
              ${PACK_IN_TASK}
              ${BEFORE_PANELS_OF_B}
              scf.for %j = %j_begin to %j_end step %columns {
                %column = arith.addi %n0, %j : index
                %j_rest = arith.subi %N, %column : index
                %has_columns = arith.cmpi sge, %j_rest, %columns : index
                %is_wide = arith.andi %has_columns, %is_plain : i1
                ${PANEL_OF_B}
                scf.for %i = %i_begin to %i_end step %rows {
                  %row = arith.addi %m0, %i : index
                  %i_rest = arith.subi %i_end, %i : index
                  %has_rows = arith.cmpi sge, %i_rest, %rows : index
                  %is_whole = arith.andi %has_rows, %is_wide : i1
                  scf.if %is_whole {
                    ${PREFETCH}
                  }
                  ${PANEL_OF_A}
                  ${SUMS}
                  scf.if %is_whole {
                    ${WHOLE_END}
                  } else {
                    vector.transfer_write %sums, %room[%0, %0] {in_bounds = [true, true]} : ${BLOCK}, memref<${ROWS}x${COLUMNS}x${SUM}>
                    %lines = arith.minsi %i_rest, %rows : index
                    scf.for %line = %0 to %lines step %1 {
                      %at = arith.addi %row, %line : index
                      %part_sums = vector.load %room[%line, %0] : memref<${ROWS}x${COLUMNS}x${SUM}>, ${LINE}
                      ${END}
                    }
                  }
                }
              }
            }
            scf.reduce
          }
        }
      }
    }
  }
  return
}
