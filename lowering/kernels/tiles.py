"""Text that transposes a tile of elements in registers: as many each way as a line of memory has."""

LINE = 64
_LANE = 16
"""Bytes; of the part of a vector register that elements are interleaved in."""

_LANES = LINE // _LANE

ELEMENTS = frozenset({"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"})
"""Types that stand in memory as they do in vectors."""

_BITS = {"f16": "i16", "bf16": "i16"}
"""What is moved in the place of types that few processors have vectors of."""


def move_tile(element: str, bytes_: int, streams: bool = False, whole_lines: bool = False) -> str:
    """From ``%source`` at ``%in``, rows ``%source_i`` apart, to ``%target`` at ``%out``, rows ``%target_j`` apart.

    ``streams``: what is written are lines of memory, which go there past the caches.

    Columns are moved in groups, of as many as elements fit into a lane of a register: of rows that are so many
    apart, the pieces are side by side in one vector. They are loaded so, or, with ``whole_lines``, lines of all
    rows are, which takes as many registers as there are rows. Rows of pieces are interleaved in each lane: the
    first half of them with the second half, as often as it takes.
    """
    tile, piece = LINE // bytes_, _LANE // bytes_
    of = [f"vector<{size}x{_BITS.get(element, element)}>" for size in (piece, 2 * piece, tile)]
    lines: list[str] = []
    for row in range(1, tile):
        lines.append(f"%in{row} = arith.addi {f'%in{row - 1}' if row > 1 else '%in'}, %source_i : index")
        lines.append(f"%out{row} = arith.addi {f'%out{row - 1}' if row > 1 else '%out'}, %target_j : index")
    if whole_lines:
        lines += _load_lines(element, piece)
    for group in range(_LANES):
        if not whole_lines:
            lines += _load_pieces(element, piece, group)
        rows = [f"%r{group}_{row}" for row in range(piece)]
        step = 1
        while step < piece:
            mixed: list[str] = []
            for row in range(piece // 2):
                for half in range(2):
                    order = [
                        lane + half * piece // 2 + at + source
                        for lane in range(0, tile, piece)
                        for at in range(piece // 2)
                        for source in (0, tile)
                    ]
                    mixed.append(f"%m{group}_{step}_{row}_{half}")
                    pair = f"{rows[row]}, {rows[row + piece // 2]}"
                    lines.append(f"{mixed[-1]} = vector.shuffle {pair} {order} : {of[2]}, {of[2]}")
            rows, step = mixed, 2 * step
        for row, turned in enumerate(rows, group * piece):
            vector = turned
            to = f"%target[{f'%out{row}' if row else '%out'}]"
            kept = f"vector<{tile}x{element}>"
            if kept != of[2]:
                lines.append(f"%line{row} = vector.bitcast {vector} : {of[2]} to {kept}")
                vector = f"%line{row}"
            hints = " {alignment = 64 : i64, nontemporal = true}" if streams else ""
            lines.append(f"vector.store {vector}, {to}{hints} : memref<?x{element}>, {kept}")
    return "\n".join(lines)


def fetch_tile(element: str, tile: int) -> str:
    """Ask for lines of ``tile`` rows of ``%source`` from ``%fetched`` on, ``%source_i`` apart."""
    lines: list[str] = []
    for row in range(tile):
        place = f"%fetched{row}" if row else "%fetched"
        if row:
            before = f"%fetched{row - 1}" if row > 1 else "%fetched"
            lines.append(f"{place} = arith.addi {before}, %source_i : index")
        lines.append(f"memref.prefetch %source[{place}], read, locality<3>, data : memref<?x{element}>")
    return "\n".join(lines)


def _load_pieces(element: str, piece: int, group: int) -> list[str]:
    """Of one group of columns: ``%r``, by group and row, has the pieces of all rows that are ``piece`` apart."""
    of = [f"vector<{size}x{_BITS.get(element, element)}>" for size in (piece, 2 * piece)]
    lines = [f"%group{group} = arith.constant {group * piece} : index"]
    for row in range(piece):
        name = f"{group}_{row}"
        for lane, at in enumerate(range(row, _LANES * piece, piece)):
            lines.append(f"%p{name}_{lane} = arith.addi {f'%in{at}' if at else '%in'}, %group{group} : index")
            lines += _load(f"%l{name}_{lane}", f"%p{name}_{lane}", element, piece)
        for half in range(2):
            both = f"%l{name}_{2 * half}, %l{name}_{2 * half + 1}"
            lines.append(f"%h{name}_{half} = vector.shuffle {both} {[*range(2 * piece)]} : {of[0]}, {of[0]}")
        order = [*range(_LANES * piece)]
        lines.append(f"%r{name} = vector.shuffle %h{name}_0, %h{name}_1 {order} : {of[1]}, {of[1]}")
    return lines


def _load(name: str, place: str, element: str, size: int) -> list[str]:
    """So many elements of ``%source``."""
    kept, moved = f"vector<{size}x{element}>", f"vector<{size}x{_BITS.get(element, element)}>"
    if kept == moved:
        return [f"{name} = vector.load %source[{place}] : memref<?x{element}>, {kept}"]
    return [
        f"{name}_kept = vector.load %source[{place}] : memref<?x{element}>, {kept}",
        f"{name} = vector.bitcast {name}_kept : {kept} to {moved}",
    ]


def _load_lines(element: str, piece: int) -> list[str]:
    """What `_load_pieces` does, of all groups."""
    type_ = f"vector<{_LANES * piece}x{_BITS.get(element, element)}>"
    lines: list[str] = []

    def every_other(name: str, first: int, left: str, right: str) -> None:
        """Every other lane of two vectors."""
        order = [lane * piece + at for lane in range(first, 2 * _LANES, 2) for at in range(piece)]
        lines.append(f"{name} = vector.shuffle {left}, {right} {order} : {type_}, {type_}")

    for row in range(piece):
        for at in range(row, _LANES * piece, piece):
            place = f"%in{at}" if at else "%in"
            lines += _load(f"%l{at}", place, element, _LANES * piece)
        for odd in range(2):
            every_other(f"%h{row}_{odd}_0", odd, f"%l{row}", f"%l{row + piece}")
            every_other(f"%h{row}_{odd}_1", odd, f"%l{row + 2 * piece}", f"%l{row + 3 * piece}")
            for second in range(2):
                every_other(f"%r{odd + 2 * second}_{row}", second, f"%h{row}_{odd}_0", f"%h{row}_{odd}_1")
    return lines
