// Each result is combined with what ${RESULTS} results of a workgroup have work-items for: each of ${SHARE} does every
// ${SHARE}th step, and in local memory the halves of what they have are combined until one is left.
func.func private @${NAME}(${PARAMETERS}) {
  ${SIZES}
  %results = arith.constant ${RESULTS} : index
  %workgroup = arith.constant ${WORK_ITEMS} : index
  %blocks = arith.ceildivui %N, %results : index
  %only = arith.constant 1 : index
  gpu.launch blocks(%block, %block_y, %block_z) in (%grid = %blocks, %grid_y = %only, %grid_z = %only)
      threads(%thread, %thread_y, %thread_z) in (%group = %workgroup, %group_y = %only, %group_z = %only)
      ${ROOMS} {
    ${SIZES_INSIDE}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %in_block = arith.constant ${RESULTS} : index
    %step = arith.constant ${SHARE} : index
    %share = arith.${SHARE_OF} %thread, %${FASTEST} : index
    %result_of = arith.${RESULT_OF} %thread, %${FASTEST} : index
    %first_of_share = arith.${FIRST_OF_SHARE} : index
    %first = arith.muli %block, %in_block : index
    %at = arith.addi %first, %result_of : index
    // Work-items behind the last result have no steps.
    %is_there = arith.cmpi ult, %at, %inside_N : index
    %end = arith.select %is_there, %inside_K, %c0 : index
    ${AT_RESULT}
    %nothing = arith.constant ${NEUTRAL} : ${ELEMENT}
    %part = scf.for %k = %share to %end step %step iter_args(%so_far = %nothing) -> (${ELEMENT}) {
      ${COMBINE}
      scf.yield ${COMBINED} : ${ELEMENT}
    }
    ${TREE}
    %is_first = arith.cmpi eq, %share, %c0 : index
    %writes = arith.andi %is_there, %is_first : i1
    scf.if %writes {
      ${END}
    }
    gpu.terminator
  }
  return
}
