// contraction.mlir with vectors along k, for results with few columns or few rows: ${ROWS} rows of A times ${COLUMNS}
// columns of B at a time, ${LANES} steps of k side by side, which are added up in the end. Indices behind the last row and
// the last column are the last one's.
//
// Operands whose elements do not stand side by side along k are packed: panels of ${LANES} steps of k, in them [line][k].
// The function itself is not optimised, which would take long: tasks do the work.
func.func private @${NAME}(${PARAMETERS}) attributes {llvm.no_inline, llvm.optimize_none} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %zeros = arith.constant dense<${ZERO_OF_SUM}> : vector<${LANES}x${SUM}>
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %lanes = arith.constant ${LANES} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %part_of_rows = arith.constant ${PART_ROWS} : index
  %is_last = arith.constant true
  %is_first = arith.xori %adds, %is_last : i1
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %last_row = arith.subi %M, %1 : index
  %last_column = arith.subi %N, %1 : index
  %behind = arith.remui %K, %lanes : index
  %whole = arith.subi %K, %behind : index
  %has_behind = arith.cmpi ne, %behind, %0 : index
  %across = arith.ceildivui %N, %part : index
  %down = arith.ceildivui %M, %part_of_rows : index
  %blocks = arith.muli %across, %down : index
  %tasks = arith.muli %blocks, %batch : index
  ${PACK}
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %room = memref.alloca() {alignment = 64 : i64} : memref<${ROOM}x${SUM}>
    %b = arith.divui %task, %blocks : index
    %block = arith.remui %task, %blocks : index
    %block_row = arith.divui %block, %across : index
    %block_column = arith.remui %block, %across : index
    %i_begin = arith.muli %block_row, %part_of_rows : index
    %i_next = arith.addi %i_begin, %part_of_rows : index
    %i_end = arith.minsi %i_next, %M : index
    %j_begin = arith.muli %block_column, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    ${BATCH}
    scf.for %column = %j_begin to %j_end step %columns {
      ${LINES_OF_B}
      scf.for %row = %i_begin to %i_end step %rows {
        ${LINES_OF_A}
        %begun:${COUNT} = scf.for %k = %0 to %whole step %lanes iter_args(${BEGIN}) -> (${SUMS}) {
          ${STEP}
        }
        %products:${COUNT} = scf.if %has_behind -> (${SUMS}) {
          %inside = vector.create_mask %behind : vector<${LANES}xi1>
          ${LAST_STEP}
        } else {
          scf.yield ${BEGUN} : ${SUMS}
        }
        ${ADD_UP}
        %rest = arith.subi %i_end, %row : index
        %lines = arith.minsi %rest, %rows : index
        scf.for %line = %0 to %lines step %1 {
          %at = arith.addi %row, %line : index
          %begin = arith.muli %line, %columns : index
          %part_sums = vector.load %room[%begin] : memref<${ROOM}x${SUM}>, ${LINE}
          ${END}
        }
      }
    }
    scf.reduce
  }
  return
}
