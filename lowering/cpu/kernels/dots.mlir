// contraction.mlir for a row of A and a B whose last axis is k: ${COLUMNS} sums of products at a time, ${LANES} steps of
// k side by side, which are added up in the end.
// The function itself is not optimised, which would take long: tasks do the work.
func.func private @${NAME}(${PARAMETERS}) attributes {llvm.no_inline, llvm.optimize_none} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_a = arith.constant ${ZERO_OF_A} : ${ELEMENT_OF_A}
  %no_b = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %zeros = arith.constant dense<${ZERO_OF_SUM}> : vector<${COLUMNS}x${LANES}x${SUM}>
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : ${LINE}
  %columns = arith.constant ${COLUMNS} : index
  %lanes = arith.constant ${LANES} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %is_last = arith.constant true
  %is_first = arith.xori %adds, %is_last : i1
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %parts = arith.ceildivui %N, %part : index
  %tasks = arith.muli %parts, %batch : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    scf.for %column = %j_begin to %j_end step %columns {
      scf.for %at = %0 to %M step %1 {
        %products = scf.for %k = %0 to %K step %lanes iter_args(%so_far = %zeros) -> (vector<${COLUMNS}x${LANES}x${SUM}>) {
          %a_read = vector.transfer_read %A[%b, ${AT_A}], %no_a ${MAP_OF_A}: ${A}, vector<${LANES}x${ELEMENT_OF_A}>
          ${CONVERT_A}
          %b_read = vector.transfer_read %B[%b, %column, %k], %no_b : ${B}, vector<${COLUMNS}x${LANES}x${ELEMENT_OF_B}>
          ${CONVERT_B}
          %a_rows = vector.broadcast %a : vector<${LANES}x${SUM}> to vector<${COLUMNS}x${LANES}x${SUM}>
          ${MULTIPLY_ADD}
          scf.yield %more : vector<${COLUMNS}x${LANES}x${SUM}>
        }
        %part_sums = vector.multi_reduction <add>, %products, %no_sums [1] : vector<${COLUMNS}x${LANES}x${SUM}> to ${LINE}
        ${END}
      }
    }
    scf.reduce
  }
  return
}
