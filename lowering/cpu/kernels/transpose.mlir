// Transposes matrices: %target[b, j, i] = %source[b, i, j], for i < %M, j < %N. The buffers are flat; strides are in
// elements, and those that are not named are 1.
//
// A unit of work is some rows of a matrix by ${COLUMNS} columns of it, and goes by tiles of ${TILE} by ${TILE} elements.
// The last tiles overlap those before them. %large: whether lines of the target go to memory past the caches. Those of a
// tile do if the tile begins where a line does, so tiles are shifted by as many rows as that takes, and by as many columns as
// lets what is read begin with a line, too. Then it is fetched ${AHEAD} elements before, or ${PAGED_AHEAD} where its rows begin at
// the same place of pages: few of their lines stay in a cache. ${PAGED_ROWS} rows of a matrix are a strip where rows of the
// target begin so.
func.func private @${NAME}(
    %source: memref<?x${TYPE}>, %source_offset: index, %source_b: index, %source_i: index,
    %target: memref<?x${TYPE}>, %target_offset: index, %target_b: index, %target_j: index,
    %B: index, %M: index, %N: index, %large: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %bytes = arith.constant ${BYTES} : index
  %line = arith.constant 64 : index
  %tile = arith.constant ${TILE} : index
  %streamed_rows = arith.constant ${STREAMED_ROWS} : index
  %paged_rows = arith.constant ${PAGED_ROWS} : index
  %page = arith.constant 4096 : index
  %many_rows = arith.constant ${ROWS} : index
  %columns = arith.constant ${COLUMNS} : index
  %grain = arith.constant ${GRAIN} : index

  %target_strides = arith.ori %target_b, %target_j : index
  %source_strides = arith.ori %source_b, %source_i : index
  %stride_bytes = arith.muli %target_strides, %bytes : index
  %odd_stride = arith.remui %stride_bytes, %line : index
  %is_even = arith.cmpi eq, %odd_stride, %zero : index
  %source_stride_bytes = arith.muli %source_strides, %bytes : index
  %source_odd_stride = arith.remui %source_stride_bytes, %line : index
  %is_source_even = arith.cmpi eq, %source_odd_stride, %zero : index
  ${MAY_STREAM}
  %distance_bytes = arith.muli %target_j, %bytes : index
  %odd_distance = arith.remui %distance_bytes, %page : index
  %is_paged = arith.cmpi eq, %odd_distance, %zero : index
  %source_distance_bytes = arith.muli %source_i, %bytes : index
  %source_odd_distance = arith.remui %source_distance_bytes, %page : index
  %is_source_paged = arith.cmpi eq, %source_odd_distance, %zero : index
  %usual_ahead = arith.constant ${AHEAD} : index
  %paged_ahead = arith.constant ${PAGED_AHEAD} : index
  %ahead = arith.select %is_source_paged, %paged_ahead, %usual_ahead : index
  %fetches = arith.cmpi ne, %ahead, %zero : index
  %few_rows = arith.select %is_paged, %paged_rows, %streamed_rows : index
  %rows = arith.select %may_stream, %few_rows, %many_rows : index

  %strips = arith.ceildivui %M, %rows : index
  %parts = arith.ceildivui %N, %columns : index
  %in_matrix = arith.muli %strips, %parts : index
  %units = arith.muli %B, %in_matrix : index
  %some_rows = arith.minui %M, %rows : index
  %some_columns = arith.minui %N, %columns : index
  %unit_size = arith.muli %some_rows, %some_columns : index
  %some = arith.maxui %unit_size, %one : index
  %few = arith.divui %grain, %some : index
  %at_once = arith.maxui %few, %one : index
  %tasks = arith.ceildivui %units, %at_once : index

  %short = arith.cmpi ult, %M, %tile : index
  %narrow = arith.cmpi ult, %N, %tile : index
  %small = arith.ori %short, %narrow : i1
  %last_i = arith.subi %M, %tile : index
  %last_j = arith.subi %N, %tile : index

  scf.parallel (%task) = (%zero) to (%tasks) step (%one) {
    // How many elements are in front of the first line. Addresses on devices are known there only.
    ${TARGET_FRONT}
    %streams = arith.andi %may_stream, %is_target_element : i1
    %shift = arith.select %streams, %target_front, %zero : index
    %is_shifted = arith.cmpi ne, %shift, %zero : index
    ${SOURCE_FRONT}
    %are_source_lines = arith.andi %is_source_even, %is_source_element : i1
    %shifts_columns = arith.andi %streams, %are_source_lines : i1
    %column_shift = arith.select %shifts_columns, %source_front, %zero : index
    %is_column_shifted = arith.cmpi ne, %column_shift, %zero : index
    %first_unit = arith.muli %task, %at_once : index
    %behind_unit = arith.addi %first_unit, %at_once : index
    %last_unit = arith.minui %behind_unit, %units : index
    scf.for %unit = %first_unit to %last_unit step %one {
      %b = arith.divui %unit, %in_matrix : index
      %of_matrix = arith.remui %unit, %in_matrix : index
      %strip = arith.divui %of_matrix, %parts : index
      %part = arith.remui %of_matrix, %parts : index
      %i0 = arith.muli %strip, %rows : index
      %i_behind = arith.addi %i0, %rows : index
      %i1 = arith.minui %i_behind, %M : index
      %j0 = arith.muli %part, %columns : index
      %j_behind = arith.addi %j0, %columns : index
      %j1 = arith.minui %j_behind, %N : index
      %from_b = arith.muli %b, %source_b : index
      %from = arith.addi %source_offset, %from_b : index
      %to_b = arith.muli %b, %target_b : index
      %to = arith.addi %target_offset, %to_b : index

      scf.if %small {
        scf.for %j = %j0 to %j1 step %one {
          %to_row = arith.muli %j, %target_j : index
          %to_j = arith.addi %to, %to_row : index
          %from_j = arith.addi %from, %j : index
          scf.for %i = %i0 to %i1 step %one {
            %from_row = arith.muli %i, %source_i : index
            %from_at = arith.addi %from_j, %from_row : index
            %to_at = arith.addi %to_j, %i : index
            %x = memref.load %source[%from_at] : memref<?x${TYPE}>
            memref.store %x, %target[%to_at] : memref<?x${TYPE}>
          }
        }
      } else {
        // Tiles of whole lines, and the others: the one in front of the first line and the one at the end, or all.
        %line_begin = arith.addi %i0, %shift : index
        %line_behind = arith.addi %i1, %shift : index
        %line_most = arith.minui %line_behind, %M : index
        %line_rows = arith.subi %line_most, %line_begin : index
        %line_count = arith.maxsi %line_rows, %zero : index
        %line_odd = arith.remui %line_count, %tile : index
        %line_even = arith.subi %line_count, %line_odd : index
        %line_end = arith.addi %line_begin, %line_even : index
        %is_first = arith.cmpi eq, %i0, %zero : index
        %has_front = arith.andi %is_first, %is_shifted : i1
        %has_rest = arith.cmpi ne, %line_odd, %zero : index
        %front = arith.select %has_front, %tile, %zero : index
        %rest = arith.select %has_rest, %tile, %zero : index
        %both = arith.addi %front, %rest : index
        %count = arith.subi %i1, %i0 : index
        %others = arith.select %streams, %both, %count : index
        %others_at = arith.select %streams, %last_i, %i0 : index
        // The same of columns; the tile in front of the first line of what is read begins at the first column.
        %column_begin = arith.addi %j0, %column_shift : index
        %column_behind = arith.addi %j1, %column_shift : index
        %column_end = arith.minui %column_behind, %N : index
        %is_first_column = arith.cmpi eq, %j0, %zero : index
        %has_column_front = arith.andi %is_first_column, %is_column_shifted : i1
        %column_front = arith.select %has_column_front, %tile, %zero : index
        %columns_begin = arith.subi %column_begin, %column_front : index
        scf.for %j = %columns_begin to %column_end step %tile {
          %not_before = arith.maxsi %j, %zero : index
          %jj = arith.minui %not_before, %last_j : index
          %from_j = arith.addi %from, %jj : index
          %to_row = arith.muli %jj, %target_j : index
          %to_j = arith.addi %to, %to_row : index
          ${MOVE_LINES}
          scf.for %i = %zero to %others step %tile {
            %is_zero = arith.cmpi eq, %i, %zero : index
            %is_front = arith.andi %has_front, %is_zero : i1
            %i_behind_at = arith.addi %others_at, %i : index
            %i_at = arith.minui %i_behind_at, %last_i : index
            %ii = arith.select %is_front, %zero, %i_at : index
            %from_row = arith.muli %ii, %source_i : index
            %in = arith.addi %from_j, %from_row : index
            %out = arith.addi %to_j, %ii : index
            ${MOVE}
          }
        }
      }
    }
    scf.reduce
  }
  return
}
