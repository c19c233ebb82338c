// contraction.mlir for a row of A and a B whose last axis is k: ${COLUMNS} sums of products at a time, ${LANES} steps of
// k side by side, which are added up in the end.
func.func private @${NAME}(%A: ${A}, %B: ${B}, %C: ${C}${EXTRAS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  %no_a = arith.constant ${ZERO_OF_A} : ${ELEMENT_OF_A}
  %no_b = arith.constant ${ZERO_OF_B} : ${ELEMENT_OF_B}
  %no_sums = arith.constant dense<${ZERO_OF_SUM}> : vector<${COLUMNS}x${LANES}x${SUM}>
  %columns = arith.constant ${COLUMNS} : index
  %lanes = arith.constant ${LANES} : index
  %part = arith.constant ${PART_COLUMNS} : index
  %is_first = arith.constant true
  %is_last = arith.constant true
  %batch = memref.dim %C, %0 : ${C}
  %M = memref.dim %C, %1 : ${C}
  %N = memref.dim %C, %2 : ${C}
  %K = memref.dim %A, %${AXIS_OF_K} : ${A}
  %parts = arith.ceildivui %N, %part : index
  %tasks = arith.muli %parts, %batch : index
  scf.parallel (%task) = (%0) to (%tasks) step (%1) {
    %b = arith.divui %task, %parts : index
    %number = arith.remui %task, %parts : index
    %j_begin = arith.muli %number, %part : index
    %j_next = arith.addi %j_begin, %part : index
    %j_end = arith.minsi %j_next, %N : index
    %C_ = memref.subview %C[%b, 0, 0] [1, %M, %N] [1, 1, 1] : ${C} to ${C_MATRIX}
    %A_ = memref.subview %A[%b, 0, 0] [1, ${SIZES_OF_A}] [1, 1, 1] : ${A} to ${A_MATRIX}
    %B_ = memref.subview %B[%b, 0, 0] [1, %N, %K] [1, 1, 1] : ${B} to ${B_MATRIX}
    scf.for %column = %j_begin to %j_end step %columns {
      scf.for %row = %0 to %M step %1 {
        ${BEGIN}
        %products = scf.for %k = %0 to %K step %lanes iter_args(%so_far = %no_sums) -> (vector<${COLUMNS}x${LANES}x${SUM}>) {
          %a_read = vector.transfer_read %A_[${AT_A}], %no_a ${MAP_OF_A}: ${A_MATRIX}, vector<${LANES}x${ELEMENT_OF_A}>
          ${CONVERT_A}
          %b_read = vector.transfer_read %B_[%column, %k], %no_b : ${B_MATRIX}, vector<${COLUMNS}x${LANES}x${ELEMENT_OF_B}>
          ${CONVERT_B}
          %a_rows = vector.broadcast %a : vector<${LANES}x${SUM}> to vector<${COLUMNS}x${LANES}x${SUM}>
          ${MULTIPLY_ADD}
          scf.yield %more : vector<${COLUMNS}x${LANES}x${SUM}>
        }
        %sums_so_far = vector.shape_cast %begin : vector<1x${COLUMNS}x${SUM}> to vector<${COLUMNS}x${SUM}>
        %added = vector.multi_reduction <add>, %products, %sums_so_far [1] : vector<${COLUMNS}x${LANES}x${SUM}> to vector<${COLUMNS}x${SUM}>
        %sums = vector.shape_cast %added : vector<${COLUMNS}x${SUM}> to vector<1x${COLUMNS}x${SUM}>
        ${END}
      }
    }
    scf.reduce
  }
  return
}
