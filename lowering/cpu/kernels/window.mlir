// Each element of the result from what a window covers at its place: pooling, and convolutions of which each channel
// of the result has one of the image. ${LANES} elements that stand side by side in the result are computed at once.
func.func private @${NAME}(%X: ${X}, ${INDICES}, ${WEIGHTS}%C: ${C}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %nothing = arith.constant dense<${ZERO_OF_C}> : vector<${LANES}x${RESULT}>
  %lanes = arith.constant ${LANES} : index
  %most = arith.constant ${PART} : index
  ${ROWS}
  %parts = arith.ceildivui %rows, %most : index
  scf.parallel (%task) = (%0) to (%parts) step (%1) {
    %pad = arith.constant dense<${PAD}> : vector<${LANES}x${ELEMENT_OF_X}>
    ${CONSTANTS}
    %first = arith.muli %task, %most : index
    %next = arith.addi %first, %most : index
    %last = arith.minsi %next, %rows : index
    scf.for %row = %first to %last step %1 {
      ${LOCATE}
      scf.for %v = %0 to %extent_v step %lanes {
        %rest = arith.subi %extent_v, %v : index
        %count = arith.minsi %rest, %lanes : index
        %inside = vector.create_mask %count : vector<${LANES}xi1>
        %c_at = arith.addi %c_row, %v : index
        ${BEGIN}
        ${SUMS}
        ${END}
      }
    }
    scf.reduce
  }
  return
}
