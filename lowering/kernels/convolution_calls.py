"""The call of a kernel for a convolution, and what its template is filled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, Any

from devscope.lowering.kernels import convolution_ends as ends
from devscope.lowering.kernels import convolution_padding as padding
from devscope.lowering.kernels.block_sizes import axes_of_block
from devscope.lowering.kernels.convolution_filters import fetch_steps, next_filters
from devscope.lowering.kernels.convolution_prologue import prologue
from devscope.lowering.kernels.convolution_sums import find_if_safe, sums_of_block
from devscope.lowering.kernels.convolution_units import Sizes, parts_at_run_time, units
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.image_blocks import ImageBlock
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.phases import Shift
from devscope.lowering.kernels.table import Row
from devscope.lowering.kernels.windowed import FLAT, element_of, strides_of, zero
from devscope.lowering.kernels.windowed_calls import FILTERS, IMAGE, RESULT, Caller, TaskMemory, packed_size

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_kernels import Plan

_TEMPLATE = "convolution"

_SIZES = ("%batch", "%M", "%N")
"""Of the result, as the kernel sees it."""

_TURNED = 4
"""Blocks of sums, at least, that are turned and go to memory at once: with 2, a stem's 7 x 7 takes 2 % longer."""


@dataclass(frozen=True)
class BlockPlace:
    """Of a block, its ``phase`` and ``batch``.

    By loop its ``first`` pixel and how many are ``here``; by axis where its part of the image ``begins``.
    """

    phase: Index
    batch: Index
    first: dict[int, Index]
    here: dict[int, Index]
    begins: dict[int, Index]


class Call:
    """``adds``: whether sums are added to what ``result`` holds. ``packed``: the filters as a packed constant, and
    whether all of them are ``finite``."""

    def __init__(
        self,
        plan: Plan,
        row: Row,
        result: Any,
        adds: bool,
        follows: Epilogue | None,
        packed: Any | None,
        finite: bool,
    ) -> None:
        self.plan, self.found, self.row, self.adds, self.follows = plan, plan.found, row, adds, follows
        self.shifts = plan.shifts or [Shift()]
        self.result = result if follows is None else follows.result
        self.extras = [] if follows is None else list(follows.operands)
        self.packed = packed
        is_float = self.found.element.startswith("f")
        # Zeros times an infinity or a NaN are NaN.
        self.padded = [] if is_float and packed is not None and not finite else plan.padded
        self.asks_filters = is_float and packed is None and bool(self.padded)
        """Whether what packs the filters finds out whether all of a panel are finite."""
        numbers = row.numbers
        self.columns, self.lanes = numbers["columns"], numbers["lanes"]
        self.memory = TaskMemory(numbers.get("stack", 0))
        images = self.found.size([] if plan.batch is None else [plan.batch])
        sizes = Sizes(
            None if images is None else images * len(self.shifts),
            self.found.extent(plan.filter),
            self.found.size(plan.sums),
        )
        self.units = units(self.found, plan.chain, sizes, row, not self.image.in_place)
        self.rows, self.blocks = self.units.rows, self.units.blocks
        several = self.units.parts is not None and self.units.parts > 1
        self.packs_first = several and not self.image.in_place
        """Whether all blocks of the image are packed before tasks, those with the same block, share them."""

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
        blocks = caller.mul(len(self.shifts), blocks)
        parts: Index | None = self.units.parts
        if parts is None:
            work = caller.mul(len(self.shifts), batch, pixels, filters, steps)
            parts = parts_at_run_time(caller, blocks, caller.ceildiv(filters, self.columns), work)
        caller.add_index("%parts", parts)
        slots = caller.min(caller.mul(blocks, parts), numbers["tasks"])
        caller.add_index("%slots", slots)
        self._add_memory(caller, blocks, slots, most, steps)
        offsets = self._begin_loops(caller, extents)
        caller.add_flat("%X", IMAGE, offsets[IMAGE])
        if self.packed is None:
            caller.add_flat("%W", FILTERS, offsets[FILTERS])
        else:
            caller.add_value("%W", self.packed)
        if plan.in_words is not None:
            caller.add_value("%least", plan.in_words.least)
            caller.add_index("%filter_exponent", plan.in_words.filter_exponent)
        sizes = [batch, pixels, filters] if plan.filters_last else [batch, filters, pixels]
        if plan.shifts:
            caller.add_flat("%C", RESULT, offsets[RESULT], written=True)
            for name, size in zip(_SIZES, sizes, strict=True):
                caller.add_index(name, size)
            c = self.flat_result
        else:
            axes = [*found.axes_of_result.values()]
            c = self._add_view(caller, "%C", RESULT, offsets[RESULT], sizes, axes, True)
        types = [
            self._add_view(caller, f"%extra{n}", RESULT + 1 + n, f"%offset{RESULT + 1 + n}", sizes, axes, False)
            for n, (_, axes) in enumerate(self.extras)
        ]
        values = self._values(caller.text_of_parameters(), c, types)
        place = op if self.follows is None else self.follows.op
        caller.call(place, library.symbol(_TEMPLATE, values), library, len(plan.outer))

    def _add_memory(self, caller: Caller, blocks: Index, slots: Index, most: Index, steps: Index) -> None:
        """For packed filters, the packed image, sums and the table. ``most``: pixels of a block."""
        plan, found = self.plan, self.found
        if self.packed is None:
            panels = caller.mul(caller.ceildiv(caller.extent(plan.filter), self.columns), self.columns)
            caller.add_scratch("%packed_w", found.element, caller.mul(len(self.shifts), panels, steps))
            for loop in (*plan.sums, plan.filter):
                caller.add_index(f"%w_stride{loop}", f"%strides1#{found.axes_of_weights[loop]}")
        image = self._image(caller.extent, lambda loop: self.blocks.get(loop, 1))
        if self.packs_first:
            caller.add_scratch("%packed_x", found.packed, caller.mul(blocks, packed_size(caller, image)))
            assert self.units.number is not None
            parts = max(self.row.numbers["tasks"] // self.units.number, 1) if image.has_parts else 1
            caller.add_index("%image_parts", parts)
        else:
            self.memory.add_image(caller, image, slots)
        room = self._room(caller, most)
        caller.add_index("%room_rows", room)
        self.memory.add(caller, "%rooms", found.element, caller.mul(room, self.columns), slots)
        asked = caller.mul(len(self.shifts), caller.ceildiv(caller.extent(plan.filter), self.columns))
        entries = caller.add(most, steps, most if plan.shifts else 0, asked if self.asks_filters else 0)
        caller.add_scratch("%table", "index", entries)

    def _begin_loops(self, caller: Caller, extents: Mapping[int, Index]) -> list[Index]:
        """Lines that begin the loops around the call; where image, filters and result begin in them."""
        plan, found = self.plan, self.found
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
        return offsets

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
    def flat_result(self) -> str:
        return FLAT.format(element_of(self.result))

    @property
    def _tile(self) -> int:
        """Pixels whose sums go to memory at once."""
        if self.plan.filters_last:
            return self.rows
        least = lcm(self.rows, self.lanes)
        return least * -(-_TURNED * self.rows // least)

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
        constants = [
            *self.image.constants(),
            f"%none = arith.constant {zero(of)} : {of}",
        ]
        lines_of_room = f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>"
        turned = ""
        if not self.plan.filters_last and not self.plan.shifts:
            turned = f"%turned = memref.alloca() {{alignment = 64 : i64}} : {self.turned_type}"
        return {
            "PARAMETERS": parameters,
            "RESULT": c,
            "ZERO": zero(c),
            "SUM": of,
            "ZERO_OF_SUM": zero(of),
            "ROWS": rows,
            "COLUMNS": columns,
            "LANES": self.lanes,
            "TILE": self._tile,
            "STEPS": self.row.numbers["steps"],
            "FETCH_STEPS": fetch_steps(self),
            "BLOCK": f"vector<{rows}x{columns}x{of}>",
            "ROOM": lines_of_room,
            "FILTERS": "%N" if self.plan.filters_last else "%M",
            "CONSTANTS": "\n".join(constants),
            "SIZES": f"{self._sizes(c_type)}\n{find_if_safe(self)}",
            "PROLOGUE": prologue(self),
            "TURNED": turned,
            "MEMORY": self._memory(),
            "LOCATE": self._locate(c_type),
            "POINTERS": self._pointers(),
            "RUNS_INSIDE": padding.runs_inside(self),
            "SUMS": sums_of_block(self),
            "NEXT_FILTERS": next_filters(self),
            "PREFETCH": ends.prefetch(self, c_type, extra_types),
            "END": ends.end_of_phase(self) if self.plan.shifts else ends.end(self, c_type, extra_types),
        }

    @property
    def turned_type(self) -> str:
        return f"memref<{self.lanes}x{self.lanes}x{self.found.element}>"

    def _counts(self, text: IndexText) -> list[Index]:
        """Phases, and blocks along each of batch and pixels."""
        blocks = [text.ceildiv(f"%n{loop}", f"%block{loop}") for loop in self.plan.chain]
        return [len(self.shifts), "%batch", *blocks]

    def of_phase(self, text: IndexText, phase: Index, values: Sequence[int]) -> Index:
        """The one of ``values`` for ``phase``."""
        made: Index = values[0]
        for number, value in enumerate(values):
            if value != values[0]:
                is_it = text.define(f"arith.cmpi eq, {text.value(phase)}, {text.value(number)} : index")
                made = text.select(is_it, value, made)
        return made

    def stride_of_result(self, loop: int) -> int:
        """Where there are phases."""
        stride = strides_of(self.found.result)[self.found.axes_of_result[loop]]
        assert stride is not None
        return stride

    def _sizes(self, c_type: str) -> IndexText:
        """Lines for extents of the result, of blocks and of sums."""
        text, plan = IndexText("q"), self.plan
        for axis, name in enumerate(() if plan.shifts else _SIZES):
            text.name(name, text.define(f"memref.dim %C, {text.value(axis)} : {c_type}"))
        text.name("%pixels", text.mul(*(f"%block{loop}" for loop in plan.chain)))
        text.name("%K", text.mul(*(f"%n{loop}" for loop in plan.sums)))
        text.name("%blocks", text.mul(*self._counts(text)))
        return text

    def _memory(self) -> IndexText:
        """Lines for what each task has: where its part of the image and its sums are."""
        text = IndexText("y")
        if not self.packs_first:
            self.memory.begin_image(text, self.image)
        text.name("%room_begin", self.memory.begin(text, "%rooms", text.mul("%room_rows", self.columns)))
        return text

    def strides(self, text: IndexText) -> dict[int, Index]:
        return self.image.strides_in_place() if self.image.in_place else self.image.strides(text)[0]

    def place(self, text: IndexText, block: Index) -> BlockPlace:
        phase, batch, *indices = text.decode(block, self._counts(text))
        chain = self.plan.chain
        first: dict[int, Index] = {
            loop: text.mul(at, f"%block{loop}") for loop, at in zip(chain, indices, strict=True)
        }
        here: dict[int, Index] = {
            loop: text.min(text.sub(f"%n{loop}", at), f"%block{loop}") for loop, at in first.items()
        }
        of_image = dict(first)
        if self.plan.batch is not None:
            of_image[self.plan.batch] = batch
        begins = self.image.begins(text, of_image)
        for number in self.shifts[0].image:
            shift = self.of_phase(text, phase, [each.image[number] for each in self.shifts])
            begins[number] = text.add(begins[number], shift)
        return BlockPlace(phase, batch, first, here, begins)

    def _locate(self, c_type: str) -> IndexText:
        """Lines for block ``%block``: ``%b``, its first pixel ``%p0`` and their ``%count``, and its part of the
        image, packed if that is necessary."""
        text, image = IndexText("l"), self.image
        place = self.place(text, "%block")
        for number in self.padded:
            text.name(f"%window_begin{number}", place.begins[number])
        if self.asks_filters:
            text.name("%first_asked", text.add(padding.asked(self, text), text.mul(place.phase, "%panels")))
        text.name("%b", place.batch)
        text.name("%panels_begin", text.mul(place.phase, "%panels", self.columns, "%K"))
        text.name("%count", text.mul(*place.here.values()))
        flat: Index = 0
        for loop, at in place.first.items():
            flat = text.add(text.mul(flat, f"%n{loop}"), at)
        text.name("%p0", flat)
        if self.plan.shifts:
            at = self.of_phase(text, place.phase, [each.result for each in self.shifts])
            places = [text.mul(index, self.stride_of_result(loop)) for loop, index in place.first.items()]
            if self.plan.batch is not None:
                places.append(text.mul("%b", self.stride_of_result(self.plan.batch)))
            text.name("%c_begin", text.add(at, *places))
        if image.in_place:
            # A cast of a view begins where its buffer does.
            x = element_of(self.found.image.value)
            results, types = "%x_begin, %x_offset, %x_size, %x_stride", f"memref<{x}>, index, index, index"
            text.lines.append(f"{results} = memref.extract_strided_metadata %X : {FLAT.format(x)} -> {types}")
            text.name("%x_block", text.add(image.base(text, place.begins), "%x_offset"))
        elif self.packs_first:
            text.name("%x_block", text.mul("%block", packed_size(text, image)))
        else:
            text.name("%x_block", "%x_room")
            image.pack(text, "%x_block", lambda loop: place.here.get(loop, 1), place.begins)
        if not self.plan.filters_last and not self.plan.shifts:
            end = text.add("%p0", "%count")
            text.lines.append(
                f"%part = memref.subview %C[0, 0, 0] [%batch, %M, {end}] [1, 1, 1] : {c_type} to {c_type}"
            )
        return text

    def _pointers(self) -> IndexText:
        """Lines for views of the image from the pixels of a row of sums on."""
        text, of = IndexText("r"), self.found.packed
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
