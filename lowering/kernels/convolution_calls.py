"""The call of a kernel for a convolution, and what its template is filled with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, Any

from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.image_blocks import ImageBlock, axes_of_block, block_extents
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.squares import transposed
from devscope.lowering.kernels.table import Row
from devscope.lowering.kernels.windowed import FLAT, converted, element_of, strides_of, zero
from devscope.lowering.kernels.windowed_calls import FILTERS, IMAGE, RESULT, Caller, TaskMemory

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_kernels import Plan


_FEW = 8
"""Blocks of sums in registers that packing a part of the image is worth for."""


_UNITS = 4
"""Of work, at least, that a large convolution is cut into: blocks of pixels, each with a part of the filters."""

_WORK = 1 << 20
"""Multiplications of such a unit, at least."""


class Call:
    """``adds``: whether sums are added to what ``result`` holds. ``packed``: the filters as a packed constant."""

    def __init__(
        self, plan: Plan, row: Row, result: Any, adds: bool, follows: Epilogue | None, packed: Any | None
    ) -> None:
        self.plan, self.found, self.row, self.adds, self.follows = plan, plan.found, row, adds, follows
        self.result = result if follows is None else follows.result
        self.extras = [] if follows is None else list(follows.operands)
        self.packed = packed
        numbers = row.numbers
        self.rows, self.columns, self.lanes = (numbers[name] for name in ("rows", "columns", "lanes"))
        self.memory = TaskMemory(numbers.get("stack", 0))
        self.blocks = block_extents(self.found, plan.chain, {}, self._pixels(), numbers["elements"])

    def _pixels(self) -> int:
        """Of a block, at most: so few that there are blocks for all tasks, but not less than make one worth it."""
        numbers, batch = self.row.numbers, self.plan.batch
        loops = [*self.plan.chain, *([] if batch is None else [batch])]
        pixels, few = self.found.size(loops), _FEW * self.rows
        return few if pixels is None else min(max(few, pixels // numbers["tasks"]), numbers["pixels"])

    @staticmethod
    def _parts(text: IndexText, blocks: Index, panels: Index, work: Index) -> Index:
        """Of the filters, for tasks of their own: each packs the block's part of the image again."""
        wanted = text.ceildiv(_UNITS, text.max(blocks, 1))
        return text.max(text.min(text.min(wanted, panels), text.div(work, _WORK)), 1)

    def insert(self, op: Any, library: KernelLibrary) -> None:
        """Put the call in front of ``op``, or of what it takes along."""
        plan, found, numbers = self.plan, self.found, self.row.numbers
        caller = Caller(found, self.result, [value for value, _ in self.extras])
        for loop in (*plan.chain, *plan.sums):
            caller.add_index(f"%n{loop}", caller.extent(loop))
        for loop in plan.chain:
            caller.add_index(f"%block{loop}", self.blocks[loop])
        caller.add_image()
        extents = {loop: caller.extent(loop) for loop in (*plan.chain, *plan.sums, plan.filter, *plan.outer)}
        pixels, filters = caller.mul(*(extents[loop] for loop in plan.chain)), extents[plan.filter]
        steps = caller.mul(*(extents[loop] for loop in plan.sums))
        batch = 1 if plan.batch is None else caller.extent(plan.batch)
        most = caller.mul(*(self.blocks[loop] for loop in plan.chain))
        blocks = caller.mul(batch, *(caller.ceildiv(extents[loop], self.blocks[loop]) for loop in plan.chain))
        work = caller.mul(batch, pixels, filters, steps)
        parts = self._parts(caller, blocks, caller.ceildiv(filters, self.columns), work)
        caller.add_index("%parts", parts)
        slots = caller.min(caller.mul(blocks, parts), numbers["tasks"])
        caller.add_index("%slots", slots)
        if self.packed is None:
            panels = caller.mul(caller.ceildiv(filters, self.columns), self.columns)
            caller.add_scratch("%packed_w", found.element, caller.mul(panels, steps))
            for loop in (*plan.sums, plan.filter):
                caller.add_index(f"%w_stride{loop}", f"%strides1#{found.axes_of_weights[loop]}")
        image = self._image(caller.extent, lambda loop: self.blocks.get(loop, 1))
        if not image.in_place:
            _, size = image.strides(caller)
            self.memory.add(caller, "%packed_x", found.element, caller.add(size, 2 * self.lanes), slots)
        room = self._room(caller, most)
        caller.add_index("%room_rows", room)
        self.memory.add(caller, "%rooms", found.element, caller.mul(room, self.columns), slots)
        caller.add_scratch("%table", "index", caller.add(most, steps, steps))
        offsets: list[Index] = [f"%offset{number}" for number in range(3)]
        for loop in plan.outer:
            at = caller.new()
            ends = [caller.value(each) for each in (0, extents[loop], 1)]
            caller.lines.append(f"scf.for {at} = {ends[0]} to {ends[1]} step {ends[2]} {{")
            number = found.axis_with(loop)
            if number is not None and found.axes[number].place.source is not None:
                stride = f"%strides0#{found.axes[number].place.source}"
                offsets[IMAGE] = caller.add(offsets[IMAGE], caller.mul(at, stride, found.axes[number].step))
            for buffer, axes in ((FILTERS, found.axes_of_weights), (RESULT, found.axes_of_result)):
                if loop in axes:
                    offsets[buffer] = caller.add(offsets[buffer], caller.mul(at, f"%strides{buffer}#{axes[loop]}"))
        caller.add_flat("%X", IMAGE, offsets[IMAGE])
        if self.packed is None:
            caller.add_flat("%W", FILTERS, offsets[FILTERS])
        else:
            caller.add_value("%W", self.packed)
        sizes = [batch, pixels, filters] if plan.filters_last else [batch, filters, pixels]
        c = self._add_view(caller, "%C", RESULT, offsets[RESULT], sizes, [*found.axes_of_result.values()], True)
        types = [
            self._add_view(caller, f"%extra{n}", RESULT + 1 + n, f"%offset{RESULT + 1 + n}", sizes, axes, False)
            for n, (_, axes) in enumerate(self.extras)
        ]
        values = self._values(caller.text_of_parameters(), c, types)
        place = op if self.follows is None else self.follows.op
        caller.call(place, library.symbol(self.row.template, values), library, len(plan.outer))

    def _add_view(
        self,
        caller: Caller,
        name: str,
        number: int,
        offset: Index,
        sizes: list[Index],
        axes: Any,
        written: bool,
    ) -> str:
        """A view of the result, or of what is read with it, as the kernel takes it."""
        its_axes = sorted(axes) if number == RESULT else list(axes)
        places = self.plan.buffer_axes(its_axes)
        strides: list[Index] = [0 if place is None else f"%strides{number}#{place}" for place in places]
        if places[2] is not None and strides_of(caller.buffers[number])[places[2]] == 1:
            strides[2] = 1
        return caller.add_view(name, number, offset, sizes, strides, written)

    @property
    def _tile(self) -> int:
        """Pixels whose sums go to memory at once."""
        return self.rows if self.plan.filters_last else lcm(self.rows, self.lanes)

    def _room(self, text: IndexText, pixels: Index) -> Index:
        """Rows of a room: for one tile, or all ``pixels`` of a block if their sums have several parts."""
        steps = self.found.size(self.plan.sums)
        if steps is not None and steps <= self.row.numbers["steps"]:
            return self._tile
        return text.mul(text.ceildiv(pixels, self._tile), self._tile)

    def _image(self, extent: Callable[[int], Index], block: Callable[[int], Index]) -> ImageBlock:
        order = axes_of_block(self.found, self.plan.chain)
        return ImageBlock(self.found, order, None, self.lanes, extent, block)

    @cached_property
    def image(self) -> ImageBlock:
        """In the kernel, for all sizes."""
        chain = self.plan.chain
        return self._image(lambda loop: f"%n{loop}", lambda loop: f"%block{loop}" if loop in chain else 1)

    def _values(self, parameters: str, c_type: str, extra_types: list[str]) -> dict[str, object]:
        of, rows, columns = self.found.element, self.rows, self.columns
        c = element_of(self.result)
        w = element_of(self.found.weights)
        constants = [
            *self.image.constants(),
            f"%no_w = arith.constant dense<{zero(w)}> : vector<{columns}x{w}>",
            f"%none = arith.constant {zero(of)} : {of}",
        ]
        lines_of_room = f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>"
        turned = ""
        if not self.plan.filters_last:
            turned = f"%turned = memref.alloca() {{alignment = 64 : i64}} : {self._turned}"
        return {
            "PARAMETERS": parameters,
            "C": c_type,
            "RESULT": c,
            "ZERO": zero(c),
            "SUM": of,
            "ZERO_OF_SUM": zero(of),
            "ROWS": rows,
            "COLUMNS": columns,
            "LANES": self.lanes,
            "TILE": self._tile,
            "STEPS": self.row.numbers["steps"],
            "BLOCK": f"vector<{rows}x{columns}x{of}>",
            "ROOM": lines_of_room,
            "FILTERS": "%N" if self.plan.filters_last else "%M",
            "CONSTANTS": "\n".join(constants),
            "SIZES": self._sizes(),
            "PIXEL": self._pixel(),
            "STEP": self._step(),
            "PACK_W": self._pack_filters() if self.packed is None else "",
            "TURNED": turned,
            "MEMORY": self._memory(),
            "LOCATE": self._locate(c_type),
            "POINTERS": self._pointers(),
            "READ_A": self._read_pixels(),
            "READ_B": self._read_filters(),
            "END": self._end(c_type, extra_types),
        }

    @property
    def _turned(self) -> str:
        return f"memref<{self.lanes}x{self.lanes}x{self.found.element}>"

    def _counts(self, text: IndexText) -> list[Index]:
        """Blocks along each of batch and pixels."""
        return ["%batch", *(text.ceildiv(f"%n{loop}", f"%block{loop}") for loop in self.plan.chain)]

    def _sizes(self) -> IndexText:
        text, plan = IndexText("q"), self.plan
        text.name("%pixels", text.mul(*(f"%block{loop}" for loop in plan.chain)))
        text.name("%K", text.mul(*(f"%n{loop}" for loop in plan.sums)))
        text.name("%blocks", text.mul(*self._counts(text)))
        return text

    def _memory(self) -> IndexText:
        """Lines for what each task has: where its part of the image and its sums are."""
        text = IndexText("y")
        if not self.image.in_place:
            size = text.add(self.image.strides(text)[1], 2 * self.lanes)
            text.name("%x_room", self.memory.begin(text, "%packed_x", size))
        text.name("%room_begin", self.memory.begin(text, "%rooms", text.mul("%room_rows", self.columns)))
        return text

    def _strides(self, text: IndexText) -> dict[int, Index]:
        return self.image.strides_in_place() if self.image.in_place else self.image.strides(text)[0]

    def _pixel(self) -> IndexText:
        """Lines that store the offset of pixel ``%p`` of a block."""
        text, chain = IndexText("t"), self.plan.chain
        names = text.decode("%p", [f"%block{loop}" for loop in chain])
        offset = self.image.offset(text, dict(zip(chain, names, strict=True)), self._strides(text))
        text.lines.append(f"memref.store {text.value(offset)}, %table[%p] : memref<?xindex>")
        return text

    def _step(self) -> IndexText:
        """Lines that store the offset of step ``%k`` in a block of the image, and in the filters."""
        text, sums = IndexText("t"), self.plan.sums
        names = text.decode("%k", [f"%n{loop}" for loop in sums])
        indices = dict(zip(sums, names, strict=True))
        offset = self.image.offset(text, indices, self._strides(text))
        entry = text.add("%pixels", "%k")
        text.lines.append(f"memref.store {text.value(offset)}, %table[{entry}] : memref<?xindex>")
        if self.packed is None:
            offset = text.add(*(text.mul(at, f"%w_stride{loop}") for loop, at in indices.items()))
            entry = text.add(entry, "%K")
            text.lines.append(f"memref.store {text.value(offset)}, %table[{entry}] : memref<?xindex>")
        return text

    def _pack_filters(self) -> IndexText:
        """Lines that pack panels: [filters / columns][k][columns]."""
        text, found, columns, of = IndexText("w"), self.found, self.columns, self.found.element
        assert found.w is not None
        w = element_of(found.weights)
        filters = "%N" if self.plan.filters_last else "%M"
        source, stored = FLAT.format(w), f"vector<{columns}x{of}>"
        panels = text.ceildiv(filters, columns)
        tasks = text.value(text.min(panels, "%slots"))
        text.lines.append(f"scf.parallel (%task) = (%0) to ({tasks}) step (%1) {{")
        with text.loop("%task", panels, tasks) as panel:
            first = text.mul(panel, columns)
            begin = text.mul(first, "%K")
            behind = text.mul(first, f"%w_stride{self.plan.filter}")
            left = text.min(text.sub(filters, first), columns)
            mask = text.define(f"vector.create_mask {left} : vector<{columns}xi1>")
            with text.loop(0, "%K") as k:
                entry = text.add(k, "%pixels", "%K")
                at = text.add(behind, text.define(f"memref.load %table[{entry}] : memref<?xindex>"))
                to = text.add(begin, text.mul(k, columns))
                if strides_of(found.weights)[found.axes_of_weights[self.plan.filter]] == 1:
                    read, made = text.new(), text.new()
                    text.lines.append(
                        f"{read} = vector.maskedload %W[{at}], {mask}, %no_w : {source}, vector<{columns}xi1>, "
                        f"vector<{columns}x{w}> into vector<{columns}x{w}>"
                    )
                    text.lines += converted(made, read, w, of, str(columns), found.w)
                    text.lines.append(f"vector.store {made}, %packed_w[{to}] : memref<?x{of}>, {stored}")
                else:
                    with text.loop(0, left) as number:
                        each = text.add(at, text.mul(number, f"%w_stride{self.plan.filter}"))
                        element = text.define(f"memref.load %W[{each}] : {source}")
                        read, made = text.define(f"vector.broadcast {element} : {w} to vector<1x{w}>"), text.new()
                        text.lines += converted(made, read, w, of, "1", found.w)
                        place = text.add(to, number)
                        text.lines.append(
                            f"vector.store {made}, %packed_w[{place}] : memref<?x{of}>, vector<1x{of}>"
                        )
        text.lines += ["scf.reduce", "}"]
        return text

    def _locate(self, c_type: str) -> IndexText:
        """Lines for block ``%block``: ``%b``, its first pixel ``%p0`` and their ``%count``, and its part of the
        image, packed if that is necessary."""
        text, chain, image = IndexText("l"), self.plan.chain, self.image
        batch, *indices = text.decode("%block", self._counts(text))
        text.name("%b", batch)
        first: dict[int, Index] = {
            loop: text.mul(at, f"%block{loop}") for loop, at in zip(chain, indices, strict=True)
        }
        here: dict[int, Index] = {
            loop: text.min(text.sub(f"%n{loop}", at), f"%block{loop}") for loop, at in first.items()
        }
        text.name("%count", text.mul(*here.values()))
        flat: Index = 0
        for loop, at in first.items():
            flat = text.add(text.mul(flat, f"%n{loop}"), at)
        text.name("%p0", flat)
        if self.plan.batch is not None:
            first[self.plan.batch] = "%b"
        begins = image.begins(text, first)
        if image.in_place:
            # A cast of a view begins where its buffer does.
            x = element_of(self.found.image.value)
            results, types = "%x_begin, %x_offset, %x_size, %x_stride", f"memref<{x}>, index, index, index"
            text.lines.append(f"{results} = memref.extract_strided_metadata %X : {FLAT.format(x)} -> {types}")
            text.name("%x_block", text.add(image.base(text, begins), "%x_offset"))
        else:
            text.name("%x_block", "%x_room")
            image.pack(text, "%x_block", lambda loop: here.get(loop, 1), begins)
        if not self.plan.filters_last:
            end = text.add("%p0", "%count")
            text.lines.append(
                f"%part = memref.subview %C[0, 0, 0] [%batch, %M, {end}] [1, 1, 1] : {c_type} to {c_type}"
            )
        return text

    def _pointers(self) -> IndexText:
        """Lines for views of the image from the pixels of a row of sums on."""
        text, of = IndexText("r"), self.found.element
        buffer, type_ = ("%X", FLAT.format(of)) if self.image.in_place else ("%packed_x", f"memref<?x{of}>")
        for number in range(self.rows):
            pixel = text.min(text.add("%i", number), "%last_pixel")
            offset = text.define(f"memref.load %table[{pixel}] : memref<?xindex>")
            at = text.add("%x_block", offset)
            text.lines.append(
                f"%from{number} = memref.reinterpret_cast {buffer} to offset: [{at}], sizes: [%1], strides: [1] : "
                f"{type_} to {FLAT.format(of)}"
            )
        return text

    def _read_pixels(self) -> str:
        of, rows = self.found.element, range(self.rows)
        lines = [f"%e{n}_ = memref.load %from{n}[%k_behind] : {FLAT.format(of)}" for n in rows]
        elements = ", ".join(f"%e{n}_" for n in rows)
        return "\n".join([*lines, f"%a = vector.from_elements {elements} : vector<{self.rows}x{of}>"])

    def _read_filters(self) -> str:
        of, columns = self.found.element, self.columns
        if self.packed is None:
            return f"%b_row = vector.load %packed_w[%line_at] : memref<?x{of}>, vector<{columns}x{of}>"
        assert self.found.w is not None
        w = element_of(self.found.weights)
        read = f"%b_read = vector.load %W[%line_at] : {FLAT.format(w)}, vector<{columns}x{w}>"
        return "\n".join([read, *converted("%b_row", "%b_read", w, of, str(columns), self.found.w)])

    def _end(self, c_type: str, extra_types: list[str]) -> IndexText:
        """Lines that write the sums of a room, through the epilogue."""
        text, of, lanes, columns = IndexText("d"), self.found.element, self.lanes, self.columns
        if self.plan.filters_last:
            with text.loop("%tile", "%tile_end") as line:
                text.name("%at", text.add("%p0", line))
                text.name("%column", "%j")
                room = f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>"
                row = text.sub(line, "%room_begins")
                sums = text.define(f"vector.load %room[{row}, %0] : {room}, vector<{columns}x{of}>")
                self._end_line(text, sums, columns, "%C", c_type, extra_types)
            return text
        with text.loop("%tile", "%tile_end", lanes) as pixel, text.loop(0, columns, lanes) as filter_:
            self._turn(text, pixel, filter_)
            begin = text.add("%j", filter_)
            left = text.min(text.sub("%M", begin), lanes)
            text.name("%column", text.add("%p0", pixel))
            with text.loop(0, left) as line:
                text.name("%at", text.add(begin, line))
                sums = text.define(f"vector.load %turned[{line}, %0] : {self._turned}, vector<{lanes}x{of}>")
                self._end_line(text, sums, lanes, "%part", c_type, extra_types)
        return text

    def _turn(self, text: IndexText, pixel: str, filter_: str) -> None:
        """Lines that write ``lanes`` pixels of as many filters of the room to ``%turned``, filters first."""
        of, lanes, columns = self.found.element, self.lanes, self.columns
        room, line = f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>", f"vector<{lanes}x{of}>"
        first = text.sub(pixel, "%room_begins")
        rows = [
            text.define(f"vector.load %room[{text.add(first, number)}, {filter_}] : {room}, {line}")
            for number in range(lanes)
        ]
        for number, row in enumerate(transposed(text, rows, of)):
            text.lines.append(f"vector.store {row}, %turned[{text.value(number)}, %0] : {self._turned}, {line}")

    def _end_line(
        self, text: IndexText, sums: str, width: int, to: str, c_type: str, extra_types: list[str]
    ) -> None:
        """Lines that write ``sums``, elements of a line of C from ``%at`` and ``%column`` on."""
        of, c = self.found.element, element_of(self.result)
        line, written = f"vector<{width}x{of}>", f"vector<{width}x{c}>"
        if self.adds:
            held = text.define(f"vector.transfer_read {to}[%b, %at, %column], %nothing : {c_type}, {written}")
            if c != of:
                held = text.define(f"arith.extf {held} : {written} to {line}")
            sums = text.define(f"arith.add{'i' if zero(of) == '0' else 'f'} {sums}, {held} : {line}")
        if c != of:
            sums = text.define(f"arith.truncf {sums} : {line} to {written}")
        if self.follows is not None:
            for number, ((value, axes), type_) in enumerate(zip(self.extras, extra_types, strict=True)):
                element = element_of(value)
                target = f"vector<{width}x{element}>"
                if self.plan.buffer_axes(axes)[2] is None:
                    one = text.define(f"memref.load %extra{number}[%b, %at, %column] : {type_}")
                    text.lines.append(f"%operand{number} = vector.broadcast {one} : {element} to {target}")
                else:
                    pad = text.define(f"arith.constant {zero(element)} : {element}")
                    read = f"vector.transfer_read %extra{number}[%b, %at, %column], {pad} : {type_}, {target}"
                    text.lines.append(f"%operand{number} = {read}")
            text.lines += [
                step.replace("$block", f"{width}x").replace("%sums", sums) for step in self.follows.steps
            ]
            sums = self.follows.done.replace("%sums", sums)
        text.lines.append(f"vector.transfer_write {sums}, {to}[%b, %at, %column] : {written}, {c_type}")
