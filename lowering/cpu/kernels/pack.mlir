// A panel of a matrix for contraction.mlir: ${WIDTH} of its rows or columns, from %first on, for %steps steps of k, from
// %begin on, as [k][${WIDTH}]. What is outside of the matrix is zero.
func.func private @${NAME}(
    %matrix: memref<?x?x${FROM}, strided<[?, 1], offset: ?>>,
    %panel: memref<?x${WIDTH}x${TO}, strided<[${WIDTH}, 1], offset: ?>>, %first: index, %begin: index, %steps: index) {
  %zero = arith.constant 0 : index
  %nothing = arith.constant ${ZERO} : ${FROM}
  %width = arith.constant ${WIDTH} : index
  %lines = arith.constant ${LINES} : index
  %depth = arith.constant ${DEPTH} : index
  scf.for %step = %zero to %steps step %depth {
    %k = arith.addi %begin, %step : index
    scf.for %line = %zero to %width step %lines {
      %at = arith.addi %first, %line : index
      ${READ}
      ${CONVERT}
      vector.transfer_write %block, %panel[%step, %line] {in_bounds = [true, true]}
          : vector<${DEPTH}x${LINES}x${TO}>, memref<?x${WIDTH}x${TO}, strided<[${WIDTH}, 1], offset: ?>>
    }
  }
  return
}
