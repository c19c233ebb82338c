// Panels of a matrix for contraction.mlir, %apart from each other: %lines of its rows or columns, from %first on, ${WIDTH}
// to a panel, for %steps steps of k, from %begin on, as [k][%width]. %extent: the number of all rows or columns.
// Elements stand side by side along them; what is behind the last one has some value. ${STEPS} steps of k are packed as
// one, the last ones with zeros.
func.func private @${NAME}(
    %matrix: memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, %b: index, %packed: memref<?x${TO}>, %offset: index,
    %first: index, %extent: index, %begin: index, %steps: index, %lines: index, %apart: index
) attributes {llvm.no_inline} {
  %zero = arith.constant 0 : index
  %nothing = arith.constant ${ZERO} : ${FROM}
  %width = arith.constant ${WIDTH} : index
  %wide = arith.constant ${WIDE} : index
  %together = arith.constant ${STEPS} : index
  %end = arith.addi %begin, %steps : index
  %one = arith.constant 1 : index
  %last_k = arith.subi %end, %one : index
  %ahead = arith.constant 16 : index
  %of_line = arith.constant ${LINE} : index
  // Panels are whole, and read without a look at each line, while as much as is read for one is inside.
  %most = arith.ceildivui %width, %wide : index
  %reads = arith.muli %most, %wide : index
  %inside = arith.subi %extent, %first : index
  %more = arith.subi %inside, %reads : index
  %behind_one = arith.addi %more, %width : index
  %count = arith.divsi %behind_one, %width : index
  %panels = arith.ceildivui %lines, %width : index
  %some = arith.minsi %count, %panels : index
  %whole = arith.maxsi %some, %zero : index
  %whole_lines = arith.muli %whole, %width : index
  scf.for %step = %zero to %steps step %together {
    %k = arith.addi %begin, %step : index
    // Few elements of a step may be needed, and the next ones be pages apart, where no processor looks by itself.
    %k_later = arith.addi %k, %ahead : index
    %k_fetched = arith.minsi %k_later, %last_k : index
    scf.for %line = %zero to %lines step %of_line {
      %at = arith.addi %first, %line : index
      memref.prefetch %matrix[%b, %k_fetched, %at], read, locality<3>, data : memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>
    }
    %k_next = arith.addi %k, %together : index
    %is_whole = arith.cmpi sle, %k_next, %end : index
    %turn = arith.divui %step, %together : index
    %behind = arith.muli %turn, %width : index
    %first_panel = arith.addi %offset, %behind : index
    %until = arith.select %is_whole, %whole_lines, %zero : index
    %edge_panel = scf.for %lines_before = %zero to %until step %width iter_args(%panel = %first_panel) -> (index) {
      %row = memref.reinterpret_cast %packed to offset: [%panel], sizes: [%width], strides: [1] : memref<?x${TO}> to memref<?x${TO}, strided<[1], offset: ?>>
      %first_of_panel = arith.addi %first, %lines_before : index
      scf.for %line = %zero to %width step %wide {
        %at = arith.addi %first_of_panel, %line : index
        ${WHOLE}
        ${CONVERT}
        ${WRITE}
      }
      %next_panel = arith.addi %panel, %apart : index
      scf.yield %next_panel : index
    }
    %after = scf.for %lines_before = %until to %lines step %width iter_args(%panel = %edge_panel) -> (index) {
      %row = memref.reinterpret_cast %packed to offset: [%panel], sizes: [%width], strides: [1] : memref<?x${TO}> to memref<?x${TO}, strided<[1], offset: ?>>
      %first_of_panel = arith.addi %first, %lines_before : index
      scf.for %line = %zero to %width step %wide {
        %at = arith.addi %first_of_panel, %line : index
        ${EDGE}
        ${CONVERT}
        ${WRITE}
      }
      %next_panel = arith.addi %panel, %apart : index
      scf.yield %next_panel : index
    }
  }
  return
}
