// A panel of a matrix for contraction.mlir: %width of its rows or columns, from %first on, for %steps steps of k, from
// %begin on, as [k][%width]. %extent: the number of all rows or columns. Elements stand side by side along them; what is
// behind the last one has some value.
func.func private @${NAME}(
    %matrix: memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, %b: index, %packed: memref<?x${TO}>, %offset: index,
    %width: index, %first: index, %extent: index, %begin: index, %steps: index
) attributes {llvm.no_inline} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant ${ZERO} : ${FROM}
  %wide = arith.constant ${WIDE} : index
  scf.for %step = %zero to %steps step %one {
    %k = arith.addi %begin, %step : index
    %behind = arith.muli %step, %width : index
    %panel = arith.addi %offset, %behind : index
    %row = memref.reinterpret_cast %packed to offset: [%panel], sizes: [%width], strides: [1] : memref<?x${TO}> to memref<?x${TO}, strided<[1], offset: ?>>
    scf.for %line = %zero to %width step %wide {
      %at = arith.addi %first, %line : index
      %at_next = arith.addi %at, %wide : index
      %is_inside = arith.cmpi sle, %at_next, %extent : index
      %read = scf.if %is_inside -> (vector<${WIDE}x${FROM}>) {
        %all = vector.load %matrix[%b, %k, %at] : memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, vector<${WIDE}x${FROM}>
        scf.yield %all : vector<${WIDE}x${FROM}>
      } else {
        %some = vector.transfer_read %matrix[%b, %k, %at], %nothing : memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, vector<${WIDE}x${FROM}>
        scf.yield %some : vector<${WIDE}x${FROM}>
      }
      ${CONVERT}
      vector.transfer_write %elements, %row[%line] : vector<${WIDE}x${TO}>, memref<?x${TO}, strided<[1], offset: ?>>
    }
  }
  return
}
