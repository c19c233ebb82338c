// C[b, pixels, filters] = the sum over k of image * filter, or C[b, filters, pixels]: contraction.mlir with a matrix of
// an image that is not in memory. Its element for pixel p and step k is at the sum of two offsets, of p and of k, which
// %table has; ${ROWS} of them are multiplied by ${COLUMNS} elements of the filters, which are packed, at a time.
//
// A task computes blocks of %pixels pixels, from a part of the image that is packed before, unless it can be read where
// it is; of few blocks it computes one of %parts of the filters. Its sums are in %rooms, [pixels][${COLUMNS}], until all steps of k are done; rooms have %room_rows.
// %slots: how many tasks there are at most; %packed_x and %rooms have a part for each, or are on its stack.
func.func private @${NAME}(${PARAMETERS}) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %nothing = arith.constant ${ZERO} : ${RESULT}
  ${CONSTANTS}
  %rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %lanes = arith.constant ${LANES} : index
  %tile_rows = arith.constant ${TILE} : index
  %most_steps = arith.constant ${STEPS} : index
  %fetch_steps = arith.constant ${FETCH_STEPS} : index
  ${SIZES}
  ${PROLOGUE}
  %at_once = arith.cmpi sle, %K, %most_steps : index
  // One sum of nothing is a sum, too: without a k there is one step, of length 0.
  %end = arith.maxsi %K, %1 : index
  %units = arith.muli %blocks, %parts : index
  %workers = arith.minsi %slots, %units : index
  %panels = arith.ceildivui ${FILTERS}, %columns : index
  %part_panels = arith.ceildivui %panels, %parts : index
  %part_filters = arith.muli %part_panels, %columns : index
  scf.parallel (%task) = (%0) to (%workers) step (%1) {
    %zeros = arith.constant dense<${ZERO_OF_SUM}> : ${BLOCK}
    ${MEMORY}
    %room = memref.reinterpret_cast %rooms to offset: [%room_begin], sizes: [%room_rows, ${COLUMNS}], strides: [${COLUMNS}, 1] : memref<?x${SUM}> to ${ROOM}
    ${TURNED}
    // Units side by side: what is around one is in the caches of its task.
    %units_before = arith.muli %task, %units : index
    %first_unit = arith.divui %units_before, %workers : index
    %units_up_to = arith.addi %units_before, %units : index
    %end_of_units = arith.divui %units_up_to, %workers : index
    scf.for %unit = %first_unit to %end_of_units step %1 {
      %block = arith.divui %unit, %parts : index
      %part_number = arith.remui %unit, %parts : index
      %first_filter = arith.muli %part_number, %part_filters : index
      %next_filter = arith.addi %first_filter, %part_filters : index
      %end_of_filters = arith.minsi %next_filter, ${FILTERS} : index
      ${LOCATE}
      %last_pixel = arith.subi %count, %1 : index
      scf.for %j = %first_filter to %end_of_filters step %columns {
        %panel_behind = arith.muli %j, %K : index
        %panel = arith.addi %panels_begin, %panel_behind : index
        scf.for %k0 = %0 to %end step %most_steps {
          %k_rest = arith.subi %K, %k0 : index
          %steps = arith.minsi %k_rest, %most_steps : index
          %k_end = arith.addi %k0, %steps : index
          %is_begin = arith.cmpi eq, %k0, %0 : index
          %is_last = arith.cmpi sle, %k_rest, %most_steps : index
          scf.for %tile = %0 to %count step %tile_rows {
            %tile_next = arith.addi %tile, %tile_rows : index
            %tile_end = arith.minsi %tile_next, %count : index
            // Where all steps are done at once, a room has one tile.
            %room_begins = arith.select %at_once, %tile, %0 : index
            scf.if %is_last {
              ${PREFETCH}
            }
            scf.for %i = %tile to %tile_end step %rows {
              %in_room = arith.subi %i, %room_begins : index
              ${POINTERS}
              ${RUNS_INSIDE}
              ${NEXT_FILTERS}
              %begin = scf.if %is_begin -> (${BLOCK}) {
                scf.yield %zeros : ${BLOCK}
              } else {
                %held = vector.transfer_read %room[%in_room, %0], %none {in_bounds = [true, true]} : ${ROOM}, ${BLOCK}
                scf.yield %held : ${BLOCK}
              }
              ${SUMS}
              vector.transfer_write %sums, %room[%in_room, %0] {in_bounds = [true, true]} : ${BLOCK}, ${ROOM}
            }
            // Few elements at a time, which go to memory while others are computed.
            scf.if %is_last {
              ${END}
            }
          }
        }
      }
    }
    scf.reduce
  }
  return
}
