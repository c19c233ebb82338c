"""The call of a kernel for windows, and what its template is filled with."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from math import lcm
from typing import TYPE_CHECKING, Any

from devscope.lowering.kernels.block_sizes import axes_of_block, block_extents
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.image_blocks import ImageBlock
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.partial_stores import partial_store, parts
from devscope.lowering.kernels.table import Row
from devscope.lowering.kernels.windowed import FLAT, Axis, converted, element_of, read_line, strides_of, zero
from devscope.lowering.kernels.windowed_calls import FILTERS, IMAGE, RESULT, Caller, TaskMemory
from devscope.lowering.memory.effects import buffer_of

if TYPE_CHECKING:
    from devscope.lowering.kernels.window_kernels import Plan

_VECTORS = 16
"""Along the last axis of a block, where windows overlap along it; else one, and rows stay in the first cache."""

_ANY_BLOCK = 4096

_FEW_ROWS = 4
"""Of which there are too few to compute at once what all blocks have multiples of."""

_READ_ROWS = 1.5
"""Rows that take as long to compute as reading what several share."""


def unrolled(row: Row) -> int:
    """Elements of a window, at most, that a kernel has instructions for."""
    return row.numbers.get("unrolled", 32)


class Call:
    """``begin``: the text of the constant that the result is filled with before; None if it is added to."""

    def __init__(self, plan: Plan, row: Row, begin: str | None, follows: Epilogue | None) -> None:
        self.plan, self.row, self.begin, self.follows = plan, row, begin, follows
        self.found = plan.found
        self.filters = self.found.weights if self.found.w is not None else None
        extent = plan.found.extent(plan.side_by_side)
        self.lanes = self._lanes(row.numbers["pooled" if self.filters is None else "lanes"], extent)
        self.whole = extent is not None and extent % self.lanes == 0
        """Whether all vectors are inside of the result."""
        self.tail = None if extent is None or "whole" not in row.numbers else extent % self.lanes
        """How many elements the last vector of a row has inside of the result, which are stored without a mask."""
        self.result = self.found.result if follows is None else follows.result
        self.extras = [] if follows is None else list(follows.operands)
        self.memory = TaskMemory(row.numbers.get("stack", 0))
        self.chain = self._chain()
        self.written_out = self._written_out(unrolled(row))
        found, pixels = self.found, row.numbers["pixels"]
        columns = unit = lcm(self.lanes, *(axis.repeats for axis in found.axes))
        if plan.contiguous() == "pixels":
            columns *= _VECTORS  # windows share columns
        blocks = block_extents(found, [plan.side_by_side], {}, columns, row.numbers["elements"])
        if blocks[plan.side_by_side] != found.extent(plan.side_by_side):
            blocks[plan.side_by_side] = -(-blocks[plan.side_by_side] // unit) * unit
        self.blocks = block_extents(found, self.chain, blocks, pixels, row.numbers["elements"])
        self.joined = self._joined()

    def _lanes(self, most: int, extent: int | None) -> int:
        """Elements at once, a power of two."""
        if extent is None:
            return most
        lanes = fewer = min(most, 1 << max(extent - 1, 0).bit_length())
        while extent % fewer and fewer > self.row.numbers.get("whole", lanes):
            fewer //= 2
        return lanes if extent % fewer else fewer

    def _joined(self) -> tuple[int, int, int] | None:
        """A loop of rows that windows overlap along, that of their elements, and how many rows are computed at
        once: where blocks have no multiples of many, the last ones begin with rows that others have, too. None if
        that is one row.
        """
        found = self.found
        axis = self._last_axis()
        if axis is None or axis.inner is None or axis.inner not in self.written_out:
            return None
        loop = self.chain[-1]
        extent, block = found.extent(loop), self.blocks.get(loop, 1)
        window = found.extent(axis.inner)
        if extent is None or window is None or (window - 1) * axis.dilation < axis.step:
            return None
        numbers = self.row.numbers
        most = min(numbers.get("rows", 1), numbers.get("block", _ANY_BLOCK) // self.lanes)
        rows = next((rows for rows in range(most, 1, -1) if extent % rows == 0 and block % rows == 0), 1)
        is_large = len(self.written_out) < len(self.plan.sums)  # others take as long to read as to compute
        if rows < _FEW_ROWS and is_large and self._may_compute_again():
            last = (extent - 1) % block + 1
            rows = min(range(1, min(most, last) + 1), key=lambda rows: -(-block // rows) * (rows + _READ_ROWS))
        return None if rows == 1 else (loop, axis.inner, rows)

    def _may_compute_again(self) -> bool:
        """Whether elements of the result may be computed twice: what they are computed from stays as it is."""
        written = buffer_of(self.result)
        return self.begin is not None and all(buffer_of(value) != written for value, _ in self.extras)

    def _last_axis(self) -> Axis | None:
        """That of the image along which windows of neighbouring rows move."""
        number = self.found.axis_with(self.chain[-1]) if self.chain else None
        axis = None if number is None else self.found.axes[number]
        return axis if axis is not None and axis.outer == self.chain[-1] else None

    def _written_out(self, most: int) -> list[int]:
        """Loops over a window, with no more than ``most`` elements together, for each of which a kernel has
        instructions: that along which rows may share what they read, if any, and the last ones."""
        axis, count, made = self._last_axis(), 1, set[int]()
        shared = None if axis is None else axis.inner
        for loop in sorted(reversed(self.plan.sums), key=lambda loop: loop != shared):
            extent = self.found.extent(loop)
            if extent is not None and count * extent <= most:
                made.add(loop)
                count *= extent
        return [loop for loop in self.plan.sums if loop in made]

    def _chain(self) -> list[int]:
        """The last rows of the result that a block can have, those with the same filters."""
        rows = self.plan.rows
        shared = [
            n for n, loop in enumerate(rows) if self.filters is not None and loop in self.found.axes_of_weights
        ]
        return rows[max(shared, default=-1) + 1 :]

    @property
    def loops(self) -> list[int]:
        """Those of the result, in order."""
        return [*self.plan.rows, self.plan.side_by_side]

    def extent(self, loop: int) -> Index:
        extent = self.found.extent(loop)
        return f"%n{loop}" if extent is None else extent

    def block(self, loop: int) -> Index:
        return self.blocks.get(loop, 1)

    @cached_property
    def image(self) -> ImageBlock:
        return self._image(self.extent)

    def _image(self, extent: Callable[[int], Index]) -> ImageBlock:
        found = self.found
        vectors = found.axis_with(self.plan.side_by_side)
        if vectors is not None and found.axes[vectors].inner == self.plan.side_by_side:
            vectors = None
        wide = [loop for loop, block in self.blocks.items() if block != 1]
        order = [number for number in axes_of_block(found, wide) if number != vectors]
        if vectors is not None:
            order.append(vectors)
        return ImageBlock(found, order, vectors, self.lanes, extent, self.block)

    def insert(self, library: KernelLibrary) -> None:
        """Put the call in front of the operation, or of what it takes along."""
        found, numbers, plan = self.found, self.row.numbers, self.plan
        caller = Caller(found, self.result, [value for value, _ in self.extras])
        caller.add_flat("%X", IMAGE, "%offset0")
        if self.filters is not None:
            caller.add_flat("%W", FILTERS, "%offset1")
        caller.add_flat("%C", RESULT, "%offset2", written=True)
        for number in range(len(self.extras)):
            caller.add_flat(f"%extra{number}", RESULT + 1 + number, f"%offset{RESULT + 1 + number}")
        for loop in (*self.loops, *plan.sums):
            if found.extent(loop) is None:
                caller.add_index(f"%n{loop}", caller.extent(loop))
        caller.add_image()
        for loop in self.loops:
            caller.add_index(f"%c_stride{loop}", f"%strides2#{found.axes_of_result[loop]}")
            for number, (_, axes) in enumerate(self.extras):
                axis = found.axes_of_result[loop]
                if axis in axes:
                    caller.add_index(
                        f"%stride{loop}_of{number}", f"%strides{RESULT + 1 + number}#{axes.index(axis)}"
                    )
        for loop, axis in found.axes_of_weights.items() if self.filters is not None else ():
            caller.add_index(f"%w_stride{loop}", f"%strides1#{axis}")
        blocks: Index = 1
        for loop in self.loops:
            blocks = caller.mul(blocks, caller.ceildiv(caller.extent(loop), self.blocks.get(loop, 1)))
        slots = caller.min(blocks, numbers["tasks"])
        caller.add_index("%slots", slots)
        self.memory.add_image(caller, self._image(caller.extent), slots)
        place = found.op if self.follows is None else self.follows.op
        caller.call(place, library.symbol("window", self._values(caller.text_of_parameters())), library)

    def _values(self, parameters: str) -> dict[str, object]:
        lanes, of, c = self.lanes, self.found.element, element_of(self.result)
        constants = self.image.constants()
        hoisted, sums = IndexText("h"), IndexText("s")
        end = IndexText("d")
        for row, result in enumerate(self._sums(hoisted, sums)):
            self._end(end, result, row)
        columns = f"""scf.for %v = %0 to %columns step %lanes {{
          %rest = arith.subi %columns, %v : index
          %is_inside = arith.cmpi sge, %rest, %lanes : index
          %inside = vector.create_mask %rest : vector<{lanes}xi1>"""
        locate = self._locate()
        rows, loops = self._rows(locate)
        return {
            "PARAMETERS": parameters,
            "RESULT": c,
            "ZERO_OF_C": zero(c),
            "LANES": lanes,
            "ZERO_OF_SUM": zero(of),
            "SUM": of,
            "CONSTANTS": "\n".join(constants),
            "BLOCKS": self._number_of_blocks(),
            "MEMORY": self._memory(),
            "LOCATE": locate,
            # Filters stay in registers for all rows; without filters, memory is read in its order.
            "OUTER": rows if self.filters is None else columns,
            "INNER": columns if self.filters is None else rows,
            "HOISTED": hoisted,
            "AT_V": "%0" if self.image.vectors is None else "%v",
            "BEGIN": "\n".join(self._begin()),
            "SUMS": sums,
            "END": end,
            "CLOSE": "}" * (1 + loops),
        }

    def _strides(self, text: IndexText) -> dict[int, Index]:
        """Of a block of the image."""
        image = self.image
        if not image.in_place:
            return image.strides(text)[0]
        return image.strides_in_place()

    def _rows(self, around: IndexText) -> tuple[IndexText, int]:
        """Lines that begin loops, so many, over the rows of a block, and say where a row is: in the image, in the
        result, and in what the epilogue reads. Lines of ``around`` are before the loops."""
        text, strides, indices = IndexText("t"), self._strides(around), dict[int, Index]()
        for loop in self.chain:
            if self.block(loop) != 1:
                index, here = text.new(), f"%rows{loop}"
                step = self.joined[2] if self.joined is not None and self.joined[0] == loop else 1
                text.lines.append(f"scf.for {index} = %0 to {here} step {around.value(step)} {{")
                extents = (self.extent(loop), self.block(loop))
                is_multiple = step == 1 or all(isinstance(each, int) and each % step == 0 for each in extents)
                indices[loop] = index if is_multiple else text.min(index, around.sub(here, step))
        text.name("%x_behind", self.image.offset(text, indices, strides))
        text.name("%c_behind", self._offset(text, indices, "%c_stride{}"))
        for number, (_, axes) in enumerate(self.extras):
            there = {loop: at for loop, at in indices.items() if self.found.axes_of_result[loop] in axes}
            text.name(f"%behind_of{number}", self._offset(text, there, f"%stride{{}}_of{number}"))
        return text, len(indices)

    def _offset(self, text: IndexText, indices: dict[int, Index], stride: str) -> Index:
        return text.add(*(text.mul(at, stride.format(loop)) for loop, at in indices.items()))

    def _counts(self, text: IndexText) -> list[Index]:
        return [text.ceildiv(self.extent(loop), self.block(loop)) for loop in self.loops]

    def _number_of_blocks(self) -> IndexText:
        text = IndexText("m")
        text.name("%blocks", text.mul(*self._counts(text)))
        return text

    def _memory(self) -> IndexText:
        """Lines for where a task packs its part of the image."""
        text = IndexText("y")
        self.memory.begin_image(text, self.image)
        return text

    def _locate(self) -> IndexText:
        """Lines for block ``%block``: where it is in the result, how many rows and columns it has, and its part of
        the image, packed if that is necessary."""
        text, found = IndexText("l"), self.found
        indices = text.decode("%block", self._counts(text))
        first = {loop: text.mul(at, self.block(loop)) for loop, at in zip(self.loops, indices, strict=True)}
        here = {
            loop: 1
            if self.block(loop) == 1
            else self.block(loop)
            if self.block(loop) == self.extent(loop)
            else text.min(text.sub(self.extent(loop), at), self.block(loop))
            for loop, at in first.items()
        }
        begins = self.image.begins(text, first)
        for loop in self.chain:
            text.name(f"%rows{loop}", here[loop])
        text.name("%columns", here[self.plan.side_by_side])
        text.name("%c_block", self._offset(text, first, "%c_stride{}"))
        for number, (_, axes) in enumerate(self.extras):
            there = {loop: at for loop, at in first.items() if found.axes_of_result[loop] in axes}
            text.name(f"%block_of{number}", self._offset(text, there, f"%stride{{}}_of{number}"))
        if self.filters is not None:
            there = {loop: at for loop, at in first.items() if loop in found.axes_of_weights}
            text.name("%w_block", self._offset(text, there, "%w_stride{}"))
        if self.image.in_place:
            text.name("%x_block", self.image.base(text, begins))
        else:
            text.name("%x_block", "%x_room")
            self.image.pack(text, "%x_block", lambda loop: here.get(loop, 1), begins)
        return text

    def _sums(self, hoisted: IndexText, text: IndexText) -> list[str]:
        """The names of the sums of windows, one of each row that is computed at once; what several rows read is
        read once."""
        found, strides = self.found, self._strides(hoisted)
        loop, inner, rows = self.joined or (None, None, 1)
        axis = None if loop is None else self._last_axis()
        sums = [self._begin_of(text, row) for row in range(rows)]
        looped = [each for each in self.plan.sums if each not in self.written_out]
        around, ends = dict[int, Index](), list[list[str]]()
        for each in looped:
            around[each] = text.new()
            ends.append(self._begin_loop(text, around[each], self.extent(each), sums))
        outside = text if looped else hoisted
        read: dict[tuple[int, ...], list[tuple[int, dict[int, int]]]] = {}
        for row in range(rows):
            for place in product(*(range(found.extent(each) or 0) for each in self.written_out)):
                indices = dict(zip(self.written_out, place, strict=True))
                there = dict(indices)
                if axis is not None and inner is not None:
                    there[inner] = row * axis.step + there[inner] * axis.dilation
                read.setdefault(tuple(there.values()), []).append((row, indices))
        filters = dict[tuple[int, ...], str]()
        for _, users in sorted(read.items()):
            row, indices = users[0]
            rows_before: dict[int, Index] = {} if loop is None else {loop: row}
            x = self._element(text, self.image.offset(outside, {**around, **indices, **rows_before}, strides))
            for row, indices in users:
                key, w = tuple(indices.values()), None
                if self.filters is not None:
                    w = filters[key] = filters.get(key) or self._filter(outside, {**around, **indices})
                sums[row] = self._add(text, sums[row], x, w)
        for end in reversed(ends):
            text.lines += [f"scf.yield {', '.join(sums)} : {', '.join([self._vector] * rows)}", "}"]
            sums = end
        return sums

    def _begin_loop(self, text: IndexText, index: Index, extent: Index, sums: list[str]) -> list[str]:
        """Lines that begin a loop whose results, the names of which are returned, are sums; ``sums`` become those
        so far."""
        begin, end, one = (text.value(each) for each in (0, extent, 1))
        made, so_far = [text.new() for _ in sums], [text.new() for _ in sums]
        carried = ", ".join(f"{inside} = {before}" for inside, before in zip(so_far, sums, strict=True))
        text.lines += [
            f"{', '.join(made)} = scf.for {index} = {begin} to {end} step {one} iter_args({carried})",
            f"-> ({', '.join([self._vector] * len(sums))}) {{",
        ]
        sums[:] = so_far
        return made

    @property
    def _vector(self) -> str:
        return f"vector<{self.lanes}x{self.found.element}>"

    def _element(self, text: IndexText, offset: Index) -> str:
        """Elements of the image."""
        of, lanes = self.found.element, self.lanes
        at = text.value(text.add("%x_at", offset))
        type_ = f"vector<{lanes}x{of}>"
        in_place = self.image.in_place
        buffer, buffer_type = ("%X", FLAT.format(of)) if in_place else ("%packed_x", f"memref<?x{of}>")
        if self.image.vectors is None:
            one = text.define(f"memref.load {buffer}[{at}] : {buffer_type}")
            return text.define(f"vector.broadcast {one} : {of} to {type_}")
        if in_place and not self.whole:
            return text.define(
                f"vector.maskedload {buffer}[{at}], %inside, %no_x : {buffer_type}, vector<{lanes}xi1>, {type_} "
                f"into {type_}"
            )
        return text.define(f"vector.load {buffer}[{at}] : {buffer_type}, {type_}")

    def _filter(self, text: IndexText, indices: dict[int, Index]) -> str:
        """Elements of the filters."""
        found, lanes, of = self.found, self.lanes, self.found.element
        assert found.w is not None
        w = element_of(self.filters)
        loop = self.plan.side_by_side
        axis = found.axes_of_weights.get(loop)
        there = {each: at for each, at in indices.items() if each in found.axes_of_weights}
        at = text.add("%w_block", self._offset(text, there, "%w_stride{}"))
        if axis is not None:
            at = text.add(at, text.mul("%v", f"%w_stride{loop}"))
        stride = 0 if axis is None else 1 if strides_of(self.filters)[axis] == 1 else f"%w_stride{loop}"
        read = read_line(text, "%W", at, w, lanes, stride)
        made = text.new()
        text.lines += converted(made, read, w, of, str(lanes), found.w)
        return made

    def _add(self, text: IndexText, sums: str, x: str, w: str | None) -> str:
        type_ = f"vector<{self.lanes}x{self.found.element}>"
        if w is None:
            return text.define(f"{self.found.combine} {sums}, {x} : {type_}")
        if zero(self.found.element) == "0":
            return text.define(f"arith.addi {sums}, {text.define(f'arith.muli {x}, {w} : {type_}')} : {type_}")
        return text.define(f"vector.fma {x}, {w}, {sums} : {type_}")

    def _begin(self, at: str = "%c_at") -> list[str]:
        """Lines for ``%begin``, of the row at ``at``."""
        lanes, of, c = self.lanes, self.found.element, element_of(self.result)
        sums, stored = f"vector<{lanes}x{of}>", f"vector<{lanes}x{c}>"
        if self.begin is not None:
            line = f"%begin_ = arith.constant dense<{self.begin}> : {stored}"
        elif self.whole:
            line = f"%begin_ = vector.load %C[{at}] : {FLAT.format(c)}, {stored}"
        else:
            types = f"{FLAT.format(c)}, vector<{lanes}xi1>, {stored} into {stored}"
            line = f"%begin_ = vector.maskedload %C[{at}], %inside, %nothing : {types}"
        return [line, f"%begin = arith.{'bitcast' if c == of else 'extf'} %begin_ : {stored} to {sums}"]

    def _begin_of(self, text: IndexText, row: int) -> str:
        """What the sums of one of the rows begin with that are computed at once."""
        if row == 0 or self.begin is not None:
            return "%begin"
        lines, name = _of_row(self._begin(self._place(text, row)), "%begin", row)
        text.lines += lines
        return name

    def _place(self, text: IndexText, row: int) -> str:
        """Where elements of one of the rows are in the result that are computed at once."""
        if row == 0 or self.joined is None:
            return "%c_at"
        return text.value(text.add("%c_at", text.mul(row, f"%c_stride{self.joined[0]}")))

    def _end(self, text: IndexText, sums: str, row: int = 0) -> None:
        """Lines that store ``sums``, through the epilogue; of one of the rows that are computed at once."""
        lanes, of, c = self.lanes, self.found.element, element_of(self.result)
        stored = f"vector<{lanes}x{c}>"
        done = sums if c == of else text.define(f"arith.truncf {sums} : vector<{lanes}x{of}> to {stored}")
        if self.follows is not None:
            lines: list[str] = []
            for number, (value, axes) in enumerate(self.extras):
                lines.append(self._read_extra(text, number, value, axes, row))
            lines += [line.replace("$block", f"{lanes}x").replace("%sums", done) for line in self.follows.steps]
            lines, done = _of_row(lines, self.follows.done.replace("%sums", done), row)
            text.lines += lines
        place, type_ = self._place(text, row), FLAT.format(c)
        store = f"vector.store {done}, %C[{place}] : {type_}, {stored}"
        if self.whole:
            text.lines.append(store)
            return
        text.lines += [f"scf.if %is_inside {{\n{store}", "} else {"]
        if self.tail is None:
            types = f"{type_}, vector<{lanes}xi1>, {stored}"
            text.lines.append(f"vector.maskedstore %C[{place}], %inside, {done} : {types}")
        else:
            places = {begin: text.value(text.add(place, begin)) for begin, _ in parts(self.tail)}
            text.lines += partial_store(done, lanes, self.tail, "%C", places, type_, c)
        text.lines.append("}")

    def _read_extra(self, text: IndexText, number: int, value: Any, axes: Sequence[int], row: int) -> str:
        """The line for ``%operand{number}``."""
        element, loop = element_of(value), self.plan.side_by_side
        at = text.add(f"%behind_of{number}", f"%block_of{number}")
        if self.joined is not None and self.found.axes_of_result[self.joined[0]] in axes:
            at = text.add(at, text.mul(row, f"%stride{self.joined[0]}_of{number}"))
        axis, stride = self.found.axes_of_result[loop], f"%stride{loop}_of{number}"
        known: Index = 0
        if axis in axes:
            at = text.add(at, text.mul("%v", stride))
            known = 1 if strides_of(value)[axes.index(axis)] == 1 else stride
        read = read_line(text, f"%extra{number}", at, element, self.lanes, known)
        type_ = f"vector<{self.lanes}x{element}>"
        return f"%operand{number} = arith.bitcast {read} : {type_} to {type_}"


_DEFINED = re.compile(r"^\s*%(\w+) =", re.MULTILINE)
_NAME = re.compile(r"%(\w+)")


def _of_row(lines: list[str], done: str, row: int) -> tuple[list[str], str]:
    """``lines`` with names of their own for a row."""
    own = {name for line in lines for name in _DEFINED.findall(line)}

    def renamed(name: re.Match[str]) -> str:
        return f"{name[0]}_row{row}" if name[1] in own else name[0]

    return [_NAME.sub(renamed, line) for line in lines], _NAME.sub(renamed, done)
