// pack.mlir for elements that stand side by side along k: ${LINES} rows of them are transposed by interleaving. Lines
// behind the last are like it; what is behind the last step is zero, up to ${DEPTH} steps.
func.func private @${NAME}(
    %matrix: memref<?x?x?x${FROM}, strided<[?, ?, 1], offset: ?>>, %b: index, %packed: memref<?x${TO}>, %offset: index,
    %width: index, %first: index, %extent: index, %begin: index, %steps: index
) attributes {llvm.no_inline} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant ${ZERO} : ${FROM}
  %last = arith.subi %extent, %one : index
  %some = arith.constant ${LINES} : index
  %depth = arith.constant ${DEPTH} : index
  %together = arith.constant ${STEPS} : index
  scf.for %step = %zero to %steps step %depth {
    %k = arith.addi %begin, %step : index
    %next_step = arith.addi %step, %depth : index
    %is_inside = arith.cmpi sle, %next_step, %steps : index
    %turn = arith.divui %step, %together : index
    %behind = arith.muli %turn, %width : index
    %panel = arith.addi %offset, %behind : index
    scf.for %line = %zero to %width step %some {
      %at = arith.addi %first, %line : index
      %p0 = arith.addi %panel, %line : index
      ${TRANSPOSE}
    }
  }
  return
}
