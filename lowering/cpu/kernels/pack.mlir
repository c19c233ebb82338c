// Panels of a matrix for contraction.mlir, %apart from each other: %lines of its rows or columns, from %first on, %width
// to a panel, for %steps steps of k, from %begin on, as [k][%width]. %extent: the number of all rows or columns.
// Elements stand side by side along them; what is behind the last one has some value. ${STEPS} steps of k are packed as
// one, the last ones with zeros.
func.func private @${NAME}(
    %matrix: memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, %b: index, %packed: memref<?x${TO}>, %offset: index,
    %width: index, %first: index, %extent: index, %begin: index, %steps: index,
    %lines: index, %apart: index
) attributes {llvm.no_inline} {
  %zero = arith.constant 0 : index
  %nothing = arith.constant ${ZERO} : ${FROM}
  %wide = arith.constant ${WIDE} : index
  %together = arith.constant ${STEPS} : index
  %end = arith.addi %begin, %steps : index
  scf.for %step = %zero to %steps step %together {
    %k = arith.addi %begin, %step : index
    %k_next = arith.addi %k, %together : index
    %is_whole = arith.cmpi sle, %k_next, %end : index
    %turn = arith.divui %step, %together : index
    %behind = arith.muli %turn, %width : index
    %first_panel = arith.addi %offset, %behind : index
    %after = scf.for %lines_before = %zero to %lines step %width iter_args(%panel = %first_panel) -> (index) {
      %row = memref.reinterpret_cast %packed to offset: [%panel], sizes: [%width], strides: [1] : memref<?x${TO}> to memref<?x${TO}, strided<[1], offset: ?>>
      %first_of_panel = arith.addi %first, %lines_before : index
      scf.for %line = %zero to %width step %wide {
        %at = arith.addi %first_of_panel, %line : index
        %at_next = arith.addi %at, %wide : index
        %is_inside = arith.cmpi sle, %at_next, %extent : index
        %is_all = arith.andi %is_inside, %is_whole : i1
        %read = scf.if %is_all -> (${ALL}) {
          ${WHOLE}
          scf.yield %all : ${ALL}
        } else {
          ${EDGE}
          scf.yield %all : ${ALL}
        }
        ${CONVERT}
        ${WRITE}
      }
      %next_panel = arith.addi %panel, %apart : index
      scf.yield %next_panel : index
    }
  }
  return
}
