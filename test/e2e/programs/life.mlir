// Conway's game of life on i8 cells with wrapped edges: neighbours through computed positions, several turns.
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%board: tensor<?x?xi8>, %turns: index) -> tensor<?x?xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %m = tensor.dim %board, %c0 : tensor<?x?xi8>
  %n = tensor.dim %board, %c1 : tensor<?x?xi8>
  %0 = scf.for %turn = %c0 to %turns step %c1 iter_args(%cells = %board) -> (tensor<?x?xi8>) {
    %empty = tensor.empty(%m, %n) : tensor<?x?xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
      ins(%cells : tensor<?x?xi8>) outs(%empty : tensor<?x?xi8>) attrs = {device.scope = #dev} {
    ^bb0(%cell: i8, %out: i8):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %none = arith.constant 0 : i8
      %sum = scf.for %di = %c0 to %c3 step %c1 iter_args(%outer = %none) -> (i8) {
        %row_sum = scf.for %dj = %c0 to %c3 step %c1 iter_args(%inner = %outer) -> (i8) {
          %i0 = arith.addi %i, %di : index
          %i1 = arith.addi %i0, %m : index
          %i2 = arith.subi %i1, %c1 : index
          %row = arith.remui %i2, %m : index
          %j0 = arith.addi %j, %dj : index
          %j1 = arith.addi %j0, %n : index
          %j2 = arith.subi %j1, %c1 : index
          %column = arith.remui %j2, %n : index
          %neighbour = tensor.extract %cells[%row, %column] : tensor<?x?xi8>
          %2 = arith.addi %inner, %neighbour : i8
          scf.yield %2 : i8
        }
        scf.yield %row_sum : i8
      }
      %three = arith.constant 3 : i8
      %neighbours = arith.subi %sum, %cell : i8
      %alive = arith.ori %neighbours, %cell : i8
      %stays = arith.cmpi eq, %alive, %three : i8
      %3 = arith.extui %stays : i1 to i8
      linalg.yield %3 : i8
    } -> tensor<?x?xi8>
    scf.yield %1 : tensor<?x?xi8>
  }
  return %0 : tensor<?x?xi8>
}
