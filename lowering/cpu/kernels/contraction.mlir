// C[b, m, n] = the sum over k of A[b, m, k] * B[b, k, n].
//
// The loops are those of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015): panels of ${ROWS} rows of A and of ${COLUMNS} columns of B are packed for at most ${STEPS}
// steps of k, and a block of ${ROWS} x ${COLUMNS} sums stays in registers while one panel of each is read. Packing
// brings every layout and element type to one form, with zeros behind the edges, so that there is one inner loop.
//
// %slots: how many matrices of a batch are worked on at once; %packed_a and %packed_b have room for so many.
func.func private @${NAME}(
    %A: ${A}, %B: ${B}, %C: ${C}${EXTRAS}, %slots: index, %packed_a: memref<?x${SUM}>, %packed_b: memref<?x${SUM}>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %most_rows = arith.constant ${MOST_ROWS} : index
  %most_columns = arith.constant ${MOST_COLUMNS} : index
  %block_rows = arith.constant ${BLOCK_ROWS} : index
  %most_steps = arith.constant ${STEPS} : index
  %depth = arith.constant ${DEPTH} : index
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %K = memref.dim %A, %${AXIS_OF_K} : ${A}
  // The sizes of packed panels, and of all that are packed at once.
  %longest = arith.minsi %K, %most_steps : index
  %depths = arith.ceildivui %longest, %depth : index
  %padded = arith.muli %depths, %depth : index
  %a_panel = arith.muli %padded, %rows : index
  %b_panel = arith.muli %padded, %columns : index
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
  %work = arith.muli %mn, %end : index
  %little = arith.constant ${LITTLE} : index
  %is_little = arith.cmpi slt, %work, %little : index
  %most_tasks = arith.constant ${TASKS} : index
  %tasks = arith.select %is_little, %1, %most_tasks : index
  scf.for %from = %0 to %batch step %slots {
    %rest = arith.subi %batch, %from : index
    %together = arith.minsi %rest, %slots : index
    scf.parallel (%slot) = (%0) to (%together) step (%1) {
      %b = arith.addi %from, %slot : index
      %a_begin = arith.muli %slot, %a_size : index
      %b_begin = arith.muli %slot, %b_size : index
      %A_ = memref.subview %A[%b, 0, 0] [1, ${SIZES_OF_A}] [1, 1, 1] : ${A} to ${A_MATRIX}
      %B_ = memref.subview %B[%b, 0, 0] [1, ${SIZES_OF_B}] [1, 1, 1] : ${B} to ${B_MATRIX}
      %C_ = memref.subview %C[%b, 0, 0] [1, %M, %N] [1, 1, 1] : ${C} to ${C_MATRIX}
      scf.for %n0 = %0 to %N step %most_columns {
        %n_rest = arith.subi %N, %n0 : index
        %n = arith.minsi %n_rest, %most_columns : index
        scf.for %k0 = %0 to %end step %most_steps {
          %k_rest = arith.subi %K, %k0 : index
          %steps = arith.minsi %k_rest, %most_steps : index
          %is_first = arith.cmpi eq, %k0, %0 : index
          %is_last = arith.cmpi sle, %k_rest, %most_steps : index
          scf.for %m0 = %0 to %M step %most_rows {
            %m_rest = arith.subi %M, %m0 : index
            %m = arith.minsi %m_rest, %most_rows : index
            %a_panels = arith.ceildivui %m, %rows : index
            %n_panels = arith.ceildivui %n, %columns : index
            %is_new = arith.cmpi eq, %m0, %0 : index
            %b_panels = arith.select %is_new, %n_panels, %0 : index
            %panels = arith.addi %a_panels, %b_panels : index
            %packers = arith.minsi %tasks, %panels : index
            scf.parallel (%task) = (%0) to (%packers) step (%1) {
              scf.for %panel = %task to %panels step %packers {
                %is_a = arith.cmpi slt, %panel, %a_panels : index
                scf.if %is_a {
                  %behind = arith.muli %panel, %a_panel : index
                  %offset = arith.addi %a_begin, %behind : index
                  %packed = memref.reinterpret_cast %packed_a to offset: [%offset], sizes: [%padded, ${ROWS}], strides: [${ROWS}, 1] : memref<?x${SUM}> to ${A_PANEL}
                  %in_block = arith.muli %panel, %rows : index
                  %row = arith.addi %m0, %in_block : index
                  func.call @${PACK_A}(%A_, %packed, %row, %k0, %steps) : (${A_MATRIX}, ${A_PANEL}, index, index, index) -> ()
                } else {
                  %number = arith.subi %panel, %a_panels : index
                  %behind = arith.muli %number, %b_panel : index
                  %offset = arith.addi %b_begin, %behind : index
                  %packed = memref.reinterpret_cast %packed_b to offset: [%offset], sizes: [%padded, ${COLUMNS}], strides: [${COLUMNS}, 1] : memref<?x${SUM}> to ${B_PANEL}
                  %in_block = arith.muli %number, %columns : index
                  %column = arith.addi %n0, %in_block : index
                  func.call @${PACK_B}(%B_, %packed, %column, %k0, %steps) : (${B_MATRIX}, ${B_PANEL}, index, index, index) -> ()
                }
              }
              scf.reduce
            }
            %down = arith.ceildivui %m, %block_rows : index
            %across = arith.ceildivui %n, %block_columns : index
            %blocks = arith.muli %down, %across : index
            %workers = arith.minsi %tasks, %blocks : index
            scf.parallel (%task) = (%0) to (%workers) step (%1) {
              scf.for %block = %task to %blocks step %workers {
                %block_row = arith.divui %block, %across : index
                %block_column = arith.remui %block, %across : index
                %i_begin = arith.muli %block_row, %block_rows : index
                %i_next = arith.addi %i_begin, %block_rows : index
                %i_end = arith.minsi %i_next, %m : index
                %j_begin = arith.muli %block_column, %block_columns : index
                %j_next = arith.addi %j_begin, %block_columns : index
                %j_end = arith.minsi %j_next, %n : index
                scf.for %j = %j_begin to %j_end step %columns {
                  %b_number = arith.divui %j, %columns : index
                  %b_behind = arith.muli %b_number, %b_panel : index
                  %b_offset = arith.addi %b_begin, %b_behind : index
                  %b_packed = memref.reinterpret_cast %packed_b to offset: [%b_offset], sizes: [%padded, ${COLUMNS}], strides: [${COLUMNS}, 1] : memref<?x${SUM}> to ${B_PANEL}
                  %column = arith.addi %n0, %j : index
                  scf.for %i = %i_begin to %i_end step %rows {
                    %a_number = arith.divui %i, %rows : index
                    %a_behind = arith.muli %a_number, %a_panel : index
                    %a_offset = arith.addi %a_begin, %a_behind : index
                    %a_packed = memref.reinterpret_cast %packed_a to offset: [%a_offset], sizes: [%padded, ${ROWS}], strides: [${ROWS}, 1] : memref<?x${SUM}> to ${A_PANEL}
                    %row = arith.addi %m0, %i : index
                    ${BEGIN}
                    %sums = scf.for %k = %0 to %steps step %1 iter_args(%so_far = %begin) -> (${BLOCK}) {
                      %a = vector.load %a_packed[%k, %0] : ${A_PANEL}, vector<${ROWS}x${SUM}>
                      %b_row = vector.load %b_packed[%k, %0] : ${B_PANEL}, vector<${COLUMNS}x${SUM}>
                      %more = vector.outerproduct %a, %b_row, %so_far : vector<${ROWS}x${SUM}>, vector<${COLUMNS}x${SUM}>
                      scf.yield %more : ${BLOCK}
                    }
                    ${END}
                  }
                }
              }
              scf.reduce
            }
          }
        }
      }
      scf.reduce
    }
  }
  return
}
