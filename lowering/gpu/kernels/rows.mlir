// Of each row, all steps are done by ${SHARE} work-items; a workgroup has ${ROWS} rows.
func.func private @${NAME}(${PARAMETERS}) {
  ${SIZES}
  %rows = arith.constant ${ROWS} : index
  %workgroup = arith.constant ${WORK_ITEMS} : index
  %blocks = arith.ceildivui %N, %rows : index
  %only = arith.constant 1 : index
  gpu.launch blocks(%block, %block_y, %block_z) in (%grid = %blocks, %grid_y = %only, %grid_z = %only)
      threads(%thread, %thread_y, %thread_z) in (%group = %workgroup, %group_y = %only, %group_z = %only)
      ${ROOMS} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    ${SIZES_INSIDE}
    %in_block = arith.constant ${ROWS} : index
    %step = arith.constant ${SHARE} : index
    %share = arith.remui %thread, %step : index
    %row_of = arith.divui %thread, %step : index
    %first_of_share = arith.muli %row_of, %step : index
    %first = arith.muli %block, %in_block : index
    %wanted = arith.addi %first, %row_of : index
    %is_there = arith.cmpi ult, %wanted, %inside_N : index
    %there = arith.select %is_there, %wanted, %c0 : index
    %row = arith.addi ${AT}, %c0 : index
    ${AT_ROW}
    ${STEPS}
    gpu.terminator
  }
  return
}
