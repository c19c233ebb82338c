// A workgroup transposes a tile in local memory, so that neighbours read neighbours, and write them: each of its
// work-items moves every ${ROWS}th element of a column. Rows of the tile are one element apart, for other banks.
func.func private @${NAME}(%source: ${SOURCE}, %target: ${TARGET}) {
  ${SIZES}
  %only = arith.constant 1 : index
  %tile = arith.constant ${TILE} : index
  %workgroup = arith.constant ${WORK_ITEMS} : index
  %down = arith.ceildivui %loop${M}, %tile : index
  %across = arith.ceildivui %loop${N}, %tile : index
  %tiles = arith.muli %down, %across : index
  %blocks = arith.muli %tiles, %B : index
  gpu.launch blocks(%block, %block_y, %block_z) in (%grid = %blocks, %grid_y = %only, %grid_z = %only)
      threads(%thread, %thread_y, %thread_z) in (%group = %workgroup, %group_y = %only, %group_z = %only)
      workgroup(%room: memref<${ROOM}x${ELEMENT}, #gpu.address_space<workgroup>>) {
    ${SIZES_INSIDE}
    %size = arith.constant ${TILE} : index
    %step = arith.constant ${ROWS} : index
    %apart = arith.constant ${APART} : index
    %of_m = arith.ceildivui %inside_loop${M}, %size : index
    %of_n = arith.ceildivui %inside_loop${N}, %size : index
    %tile_n = arith.remui %block, %of_n : index
    %rest = arith.divui %block, %of_n : index
    %tile_m = arith.remui %rest, %of_m : index
    %batch = arith.divui %rest, %of_m : index
    ${BATCH}
    %first_m = arith.muli %tile_m, %size : index
    %first_n = arith.muli %tile_n, %size : index
    %fast = arith.remui %thread, %size : index
    %slow = arith.divui %thread, %size : index
    %from_n = arith.addi %first_n, %fast : index
    %has_n = arith.cmpi ult, %from_n, %inside_loop${N} : index
    scf.for %row = %slow to %size step %step {
      %from_m = arith.addi %first_m, %row : index
      %has_m = arith.cmpi ult, %from_m, %inside_loop${M} : index
      %is_there = arith.andi %has_m, %has_n : i1
      scf.if %is_there {
        %x = memref.load %source[${FROM}] : ${SOURCE}
        %line = arith.muli %row, %apart : index
        %place = arith.addi %line, %fast : index
        memref.store %x, %room[%place] : memref<${ROOM}x${ELEMENT}, #gpu.address_space<workgroup>>
      }
    }
    gpu.barrier
    %to_m = arith.addi %first_m, %fast : index
    %goes_m = arith.cmpi ult, %to_m, %inside_loop${M} : index
    %line_of_fast = arith.muli %fast, %apart : index
    scf.for %column = %slow to %size step %step {
      %to_n = arith.addi %first_n, %column : index
      %goes_n = arith.cmpi ult, %to_n, %inside_loop${N} : index
      %goes = arith.andi %goes_m, %goes_n : i1
      scf.if %goes {
        %place = arith.addi %line_of_fast, %column : index
        %x = memref.load %room[%place] : memref<${ROOM}x${ELEMENT}, #gpu.address_space<workgroup>>
        memref.store %x, %target[${TO}] : ${TARGET}
      }
    }
    gpu.terminator
  }
  return
}
