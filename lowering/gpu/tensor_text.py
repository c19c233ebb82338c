"""What the template of contractions is filled with where tensor cores multiply.

A warp of 32 work-items multiplies fragments, of which each of them has a part, as ``mma.sync`` says (PTX ISA,
"Matrix Fragments for mma.m16n8k16"). Tiles have the elements of the operands, and are laid out as these are:
what stands side by side in memory does so in a tile, and ``ldmatrix`` transposes what is the other way round.
Pieces of 16 bytes that begin at such are copied past the registers, while the tiles before are used.
"""

from collections.abc import Mapping
from itertools import product

from devscope.lowering.gpu.contraction_match import Contraction, Operand
from devscope.lowering.gpu.contraction_text import KernelText
from devscope.lowering.gpu.index_text import Text
from devscope.lowering.interop.bindings import ir

_WARP = 32
_ROWS, _COLUMNS, _DEPTH = 16, 8, 16
"""Of what an instruction multiplies."""

_PAD = 8
"""Elements behind a line of a tile: the lines begin in different banks, at multiples of 16 bytes."""

_AT_ONCE = 8
"""Elements of 16 bits in 16 bytes."""


def is_for_tensor_cores(found: Contraction) -> bool:
    elements = {found.a.element, found.b.element}
    return found.element == "f32" and len(elements) == 1 and elements <= {"f16", "bf16"}


class TensorText(KernelText):
    """For the template ``contraction``, with other numbers: a warp computes ``warp_rows`` x ``warp_columns``."""

    def _divide(self, numbers: Mapping[str, int]) -> None:
        of = numbers
        self._warps_across = of["columns"] // of["warp_columns"]
        self._threads = _WARP * self._warps_across * (of["rows"] // of["warp_rows"])
        self._wide = 2
        self._parts_down, self._parts_across = of["warp_rows"] // _ROWS, of["warp_columns"] // _COLUMNS
        self._sums = [f"%sums{i}_{j}" for i, j in product(range(self._parts_down), range(self._parts_across))]
        self._sums_type = "vector<2x2xf32>"

    def _is_along_k(self, operand: Operand) -> bool:
        return operand.innermost() in self._found.loops["k"][-1:]

    def _operand(self, lines: str) -> Operand:
        return self._found.a if lines == "rows" else self._found.b

    def _tiles(self, lines: str) -> str:
        extents = [self._of["depth"], self._of[lines]]
        if self._is_along_k(self._operand(lines)):
            extents.reverse()
        shape = f"2x{extents[0]}x{extents[1] + _PAD}"
        return f"memref<{shape}x{self._operand(lines).element}, #gpu.address_space<workgroup>>"

    def _in_tile(self, operand: Operand, step: str, line: str) -> str:
        return f"{line}, {step}" if self._is_along_k(operand) else f"{step}, {line}"

    def _to_store(self, text: Text, value: str, element: str) -> str:
        return value

    def _shares(self, text: Text, operand: Operand, lines: str) -> list[tuple[str, str]]:
        if not self._is_copied(operand):
            return super()._shares(text, operand, lines)
        depth, wide = self._of["depth"], self._of[lines]
        side, other = (depth, wide) if self._is_along_k(operand) else (wide, depth)
        in_line = text.constant(side // _AT_ONCE)
        begin = text.index("muli", text.index("remui", "%thread", in_line), text.constant(_AT_ONCE))
        line = text.index("divui", "%thread", in_line)
        amount = other * side // _AT_ONCE // self._threads
        others = [text.plus(line, n * (other // amount)) for n in range(amount)]
        return [(each, begin) if self._is_along_k(operand) else (begin, each) for each in others]

    def _is_copied(self, operand: Operand) -> bool:
        """Whether pieces of it are aligned, and all in it or behind its end."""
        type_, inner = operand.type, operand.innermost()
        strides, offset = type_.get_strides_and_offset()
        axis = None if inner is None else operand.axis(inner)
        groups = [group[-1:] for group in self._found.loops.values()]
        if axis is None or [inner] not in groups or (operand.extent(inner or 0) or 1) % _AT_ONCE:
            return False
        others = [stride for number, stride in enumerate(strides) if number != axis]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        return all(number != dynamic and number % _AT_ONCE == 0 for number in (*others, offset))

    def _inside(self, text: Text, operand: Operand, index: str, last: str) -> str:
        if not self._is_copied(operand):
            return super()._inside(text, operand, index, last)
        exists = text.value(f"arith.cmpi ule, {index}, {last} : index")
        return text.value(f"arith.select {exists}, {index}, %c0 : index")

    def _copy(self, text: Text, letter: str, source: str, in_tile: str, exists: str) -> None:
        operand, tiles = (self._found.a, "rows") if letter == "a" else (self._found.b, "columns")
        turn = text.index("remui", text.index("divui", "%at_k", "%depth"), "%c2")
        all_ = text.constant(_AT_ONCE)
        some = text.value(f"arith.select {exists}, {all_}, %c0 : index")
        copied = f"nvgpu.device_async_copy {source}, %tiles_{letter}[{turn}, {in_tile}], {_AT_ONCE}, {some}"
        text.value(f"{copied} : {operand.type} to {self._tiles(tiles)}")
        self._before_barrier = (
            "%copies = nvgpu.device_async_create_group",
            "nvgpu.device_async_wait %copies {numGroups = 0 : i32}",
        )

    def _fragment(self, text: Text, lines: str, line: str, step: str, tiles: int) -> str:
        """So many tiles of 8 x 8 elements from a line and a step on: of A 2 x 2, of B two steps deep."""
        operand, letter = self._operand(lines), "a" if lines == "rows" else "b"
        along_k = self._is_along_k(operand)
        # Work-items 0 to 7 have the places of the rows of the first of these, 8 to 15 of the second, and so on.
        place = self._in_tile(
            operand, text.index("addi", step, f"%{letter}_step"), text.index("addi", line, f"%{letter}_line")
        )
        turned = "false" if along_k else "true"
        return text.value(
            f"nvgpu.ldmatrix %tiles_{letter}[%turn, {place}] {{numTiles = {tiles} : i32, transpose = {turned}}} : "
            f"{self._tiles(lines)} -> vector<{tiles}x2x{operand.element}>"
        )

    def _multiply(self) -> str:
        of = self._of
        text = Text([], self._numbers)
        self._positions(text)
        eight, two = text.constant(8), text.constant(2)
        row = text.index("remui", "%lane", eight)
        number = text.index("divui", "%lane", eight)
        low, high = text.index("remui", number, two), text.index("divui", number, two)
        first, second = text.index("muli", low, eight), text.index("muli", text.index("remui", high, two), eight)
        # Registers of A: rows 0 to 7, then 8 to 15, then the same of the next 8 steps; of B: the next 8 steps.
        for letter, operand, line, step in (
            ("a", self._found.a, first, second),
            ("b", self._found.b, text.constant(0), first),
        ):
            inner = (line, text.index("addi", step, row))
            if self._is_along_k(operand):
                inner = (text.index("addi", line, row), step)
            zero = text.constant(0)
            text.lines += [f"%{letter}_line = arith.addi {inner[0]}, {zero} : index"]
            text.lines += [f"%{letter}_step = arith.addi {inner[1]}, {zero} : index"]
        element = self._found.a.element
        shape = f"{{mmaShape = [{_ROWS}, {_COLUMNS}, {_DEPTH}]}}"
        types = f"(vector<4x2x{element}>, vector<2x2x{element}>, {self._sums_type}) -> {self._sums_type}"
        sums = dict(zip(product(range(self._parts_down), range(self._parts_across)), self._sums, strict=True))
        for depth in range(0, of["depth"], _DEPTH):
            step = text.constant(depth)
            a = [
                self._fragment(text, "rows", text.plus("%warp_row", i * _ROWS), step, 4)
                for i in range(self._parts_down)
            ]
            b = [
                self._fragment(text, "columns", text.plus("%warp_column", j * _COLUMNS), step, 2)
                for j in range(self._parts_across)
            ]
            for i, j in sums:
                sums[i, j] = text.value(f"nvgpu.mma.sync ({a[i]}, {b[j]}, {sums[i, j]}) {shape} : {types}")
        self._more = list(sums.values())
        return text.joined()

    def _positions(self, text: Text) -> None:
        warp = text.index("divui", "%thread", text.constant(_WARP))
        across = text.constant(self._warps_across)
        for name, op, extent in (("row", "divui", "warp_rows"), ("column", "remui", "warp_columns")):
            position = text.index(op, warp, across)
            text.lines.append(f"%warp_{name} = arith.muli {position}, {text.constant(self._of[extent])} : index")
        text.lines.append(f"%lane = arith.remui %thread, {text.constant(_WARP)} : index")

    def _results(self, text: Text) -> tuple[list[str], list[str]]:
        self._positions(text)
        four = text.constant(4)
        row = text.index("addi", "%warp_row", text.index("divui", "%lane", four))
        pair = text.index("muli", text.index("remui", "%lane", four), text.constant(2))
        column = text.index("addi", "%warp_column", pair)
        rows = [text.plus(row, 8 * n) for n in range(2 * self._parts_down)]
        return rows, [text.plus(column, _COLUMNS * n) for n in range(self._parts_across)]

    def _sums_of(self, text: Text, row: int, part: int) -> str:
        block = f"%all_sums{row // 2}_{part}"
        return text.value(f"vector.extract {block}[{row % 2}] : vector<2xf32> from {self._sums_type}")
