"""What the template of contractions is filled with where tensor cores multiply.

A warp of 32 work-items multiplies fragments, of which each of them has a part, as ``mma.sync`` says (PTX ISA,
"Matrix Fragments for mma.m16n8k16"). Tiles have the elements of the operands, and are laid out as these are:
what stands side by side in memory does so in a tile, and ``ldmatrix`` transposes what is the other way round.
Pieces of 16 bytes that begin at such are copied past the registers, while the tiles before are used.
Elements of f32 are rounded to tf32 (8 bits of exponent, 10 of mantissa) on their way to the tiles; ``ldmatrix``
cannot transpose them.
"""

from collections.abc import Mapping
from itertools import product

from devscope.lowering.gpu.contraction_match import Contraction, Operand
from devscope.lowering.gpu.contraction_text import KernelText
from devscope.lowering.gpu.index_text import Text
from devscope.lowering.interop.bindings import ir

_WARP = 32
_ROWS, _COLUMNS = 16, 8
"""Of what an instruction multiplies, 32 bytes of k deep."""

_LINES = 8
"""Of a matrix that ``ldmatrix`` reads, of 16 bytes each."""

_ELEMENTS = {"f16": "f16", "bf16": "bf16", "f32": "tf32"}


def tensor_element(found: Contraction) -> str | None:
    """The type that tensor cores would multiply in; None where they cannot."""
    elements = {found.a.element, found.b.element}
    return _ELEMENTS.get(elements.pop()) if found.element == "f32" and len(elements) == 1 else None


class TensorText(KernelText):
    """For the template ``contraction``, with other numbers: a warp computes ``warp_rows`` x ``warp_columns``."""

    def _divide(self, numbers: Mapping[str, int]) -> None:
        of = numbers
        self._is_rounded = self._found.a.element == "f32"
        self._at_once = 4 if self._is_rounded else 8
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
        extents, pad = [self._of["depth"], self._of[lines]], 8
        if self._is_along_k(self._operand(lines)):
            extents.reverse()
            pad = self._at_once
        # Lines begin at multiples of 16 bytes, those that are read together in different banks.
        shape = f"2x{extents[0]}x{extents[1] + pad}"
        return f"memref<{shape}x{self._operand(lines).element}, #gpu.address_space<workgroup>>"

    def _in_tile(self, operand: Operand, step: str, line: str) -> str:
        return f"{line}, {step}" if self._is_along_k(operand) else f"{step}, {line}"

    def _to_store(self, text: Text, value: str, element: str) -> str:
        if not self._is_rounded:
            return value
        bits = text.value(f"nvvm.convert.float.to.tf32 {value} {{rnd = #nvvm.fp_rnd_mode<rna>}}")
        return text.value(f"arith.bitcast {bits} : i32 to f32")

    def _shares(self, text: Text, operand: Operand, lines: str) -> list[tuple[str, str]]:
        if not self._is_copied(operand):
            return super()._shares(text, operand, lines)
        depth, wide = self._of["depth"], self._of[lines]
        side, other = (depth, wide) if self._is_along_k(operand) else (wide, depth)
        in_line = text.constant(side // self._at_once)
        begin = text.index("muli", text.index("remui", "%thread", in_line), text.constant(self._at_once))
        line = text.index("divui", "%thread", in_line)
        amount = other * side // self._at_once // self._threads
        others = [text.plus(line, n * (other // amount)) for n in range(amount)]
        return [(each, begin) if self._is_along_k(operand) else (begin, each) for each in others]

    def _is_copied(self, operand: Operand) -> bool:
        """Whether pieces of it are aligned, and all in it or behind its end."""
        type_, inner = operand.type, operand.innermost()
        strides, offset = type_.get_strides_and_offset()
        axis = None if inner is None else operand.axis(inner)
        groups = [group[-1:] for group in self._found.loops.values()]
        if (
            self._is_rounded
            or axis is None
            or [inner] not in groups
            or (operand.extent(inner or 0) or 1) % self._at_once
        ):
            return False
        others = [stride for number, stride in enumerate(strides) if number != axis]
        dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
        return all(number != dynamic and number % self._at_once == 0 for number in (*others, offset))

    def _inside(self, text: Text, operand: Operand, index: str, last: str) -> str:
        if not self._is_copied(operand):
            return super()._inside(text, operand, index, last)
        exists = text.value(f"arith.cmpi ule, {index}, {last} : index")
        return text.value(f"arith.select {exists}, {index}, %c0 : index")

    def _copy(self, text: Text, letter: str, source: str, in_tile: str, exists: str) -> None:
        operand, tiles = (self._found.a, "rows") if letter == "a" else (self._found.b, "columns")
        turn = text.index("remui", text.index("divui", "%at_k", "%depth"), "%c2")
        all_ = text.constant(self._at_once)
        some = text.value(f"arith.select {exists}, {all_}, %c0 : index")
        copied = f"nvgpu.device_async_copy {source}, %tiles_{letter}[{turn}, {in_tile}], {self._at_once}, {some}"
        text.value(f"{copied} : {operand.type} to {self._tiles(tiles)}")
        self._before_barrier = (
            "%copies = nvgpu.device_async_create_group",
            "nvgpu.device_async_wait %copies {numGroups = 0 : i32}",
        )

    def _fragment(self, text: Text, lines: str, line: str, step: str, tiles: int) -> str:
        """So many matrices of 8 lines and 16 bytes of steps, from a line and a step on: of A 2 x 2, of B 1 x 2."""
        operand, letter = self._operand(lines), "a" if lines == "rows" else "b"
        along_k = self._is_along_k(operand)
        type_ = self._fragment_type(tiles)
        if self._is_rounded and not along_k:
            return self._gathered(text, lines, line, step, tiles)
        # Work-items 0 to 7 have the places of the rows of the first of these, 8 to 15 of the second, and so on.
        place = self._in_tile(
            operand, text.index("addi", step, f"%{letter}_step"), text.index("addi", line, f"%{letter}_line")
        )
        turned = "false" if along_k else "true"
        return text.value(
            f"nvgpu.ldmatrix %tiles_{letter}[%turn, {place}] {{numTiles = {tiles} : i32, transpose = {turned}}} : "
            f"{self._tiles(lines)} -> {type_}"
        )

    def _gathered(self, text: Text, lines: str, line: str, step: str, tiles: int) -> str:
        """The same, element by element."""
        letter, four = "a" if lines == "rows" else "b", text.constant(4)
        line = text.index("addi", line, text.index("divui", "%lane", four))
        step = text.index("addi", step, text.index("remui", "%lane", four))
        across = tiles // 2
        values: list[str] = []
        for number in range(tiles):
            at_line = text.plus(line, number % across * _LINES)
            at_step = text.plus(step, number // across * self._at_once)
            values.append(
                text.value(f"memref.load %tiles_{letter}[%turn, {at_step}, {at_line}] : {self._tiles(lines)}")
            )
        return text.value(f"vector.from_elements {', '.join(values)} : {self._fragment_type(tiles)}")

    def _fragment_type(self, tiles: int) -> str:
        return f"vector<{tiles}x{self._at_once // 4}x{self._found.a.element}>"

    def _multiply(self) -> str:
        of, steps = self._of, 2 * self._at_once
        text = Text([], self._numbers)
        self._positions(text)
        lines, at_once, two = text.constant(_LINES), text.constant(self._at_once), text.constant(2)
        in_matrix = text.index("remui", "%lane", lines)
        number = text.index("divui", "%lane", lines)
        low, high = text.index("remui", number, two), text.index("divui", number, two)
        high = text.index("remui", high, two)
        # Registers of A: rows 0 to 7, then 8 to 15, then the same of the next steps; of B: the next steps.
        for letter, operand, of_lines, of_steps in (
            ("a", self._found.a, low, high),
            ("b", self._found.b, text.constant(0), low),
        ):
            # What a matrix has 8 of are lines of memory.
            along_k = self._is_along_k(operand)
            line = text.index("muli", of_lines, lines)
            step = text.index("muli", of_steps, at_once)
            inner = (text.index("addi", line, in_matrix), step)
            if not along_k:
                inner = (line, text.index("addi", step, in_matrix))
            zero = text.constant(0)
            text.lines += [f"%{letter}_line = arith.addi {inner[0]}, {zero} : index"]
            text.lines += [f"%{letter}_step = arith.addi {inner[1]}, {zero} : index"]
        shape = f"mmaShape = [{_ROWS}, {_COLUMNS}, {steps}]"
        shape = f"{{{shape}, tf32Enabled}}" if self._is_rounded else f"{{{shape}}}"
        types = ", ".join([self._fragment_type(4), self._fragment_type(2), self._sums_type])
        sums = dict(zip(product(range(self._parts_down), range(self._parts_across)), self._sums, strict=True))
        for depth in range(0, of["depth"], steps):
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
                multiplied = f"nvgpu.mma.sync ({a[i]}, {b[j]}, {sums[i, j]}) {shape}"
                sums[i, j] = text.value(f"{multiplied} : ({types}) -> {self._sums_type}")
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
