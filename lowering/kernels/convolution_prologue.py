"""What a kernel for convolutions does before its tasks: a table of offsets, filters and images that are packed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from devscope.lowering.kernels import convolution_padding as padding
from devscope.lowering.kernels.convolution_filters import pack_filters
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.windowed_calls import packed_size

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call


def prologue(call: Call) -> IndexText:
    """Lines for what comes before the tasks: they fill the table, pack the filters if they are not, and the
    image if tasks share it."""
    text = IndexText("t")
    filters = "%N" if call.plan.filters_last else "%M"
    panels = text.ceildiv(filters, call.columns) if call.packed is None else 0
    all_panels = text.mul(panels, len(call.shifts))
    packers = text.min(all_panels, "%slots")
    if call.packed is not None and not call.packs_first:
        _fill_table(call, text)
        return text
    parts = text.mul("%blocks", "%image_parts") if call.packs_first else 0
    tasks = text.value(text.add(packers, parts, 1))
    first_part, table = text.value(packers), text.value(text.sub(tasks, 1))
    text.lines.append(f"scf.parallel (%task) = (%0) to ({tasks}) step (%1) {{")
    if call.packed is None:
        packs_filters = text.define(f"arith.cmpi ult, %task, {first_part} : index")
        text.lines.append(f"scf.if {packs_filters} {{")
        with text.loop("%task", all_panels, packers) as panel:
            pack_filters(call, text, panel, panels, filters)
            if call.asks_filters:
                padding.ask_filters(call, text, panel)
        text.lines.append("} else {")
    if call.packs_first:
        packs_image = text.define(f"arith.cmpi ult, %task, {table} : index")
        text.lines.append(f"scf.if {packs_image} {{")
        _pack_part(call, text, text.sub("%task", first_part))
        text.lines.append("} else {")
    _fill_table(call, text)
    text.lines += ["}"] * ((call.packed is None) + call.packs_first)
    text.lines += ["scf.reduce", "}"]
    return text


def _pack_part(call: Call, text: IndexText, task: Index) -> None:
    """Lines that pack a part of a block of the image."""
    block = text.div(task, "%image_parts")
    place = call.place(text, block)
    to = text.mul(block, packed_size(text, call.image))
    part = (text.rem(task, "%image_parts"), "%image_parts") if call.image.has_parts else None
    call.image.pack(text, to, lambda loop: place.here.get(loop, 1), place.begins, part)


def _fill_table(call: Call, text: IndexText) -> None:
    """Lines that store the offset in a block of the image of each of its pixels and of each step and, if there
    are phases, the pixel's offset in the result."""
    chain, sums = call.plan.chain, call.plan.sums
    strides = call.strides(text)

    def fill(loops: Sequence[int], extents: Sequence[Index], first: Index, entries: int) -> None:
        with ExitStack() as stack:
            number: Index = 0
            indices: dict[int, Index] = {}
            for loop, extent in zip(loops, extents, strict=True):
                indices[loop] = stack.enter_context(text.loop(0, extent))
                number = text.add(text.mul(number, extent), indices[loop])
            values = [call.image.offset(text, indices, strides)]
            if entries > 1:
                in_result = (text.mul(at, call.stride_of_result(loop)) for loop, at in indices.items())
                values.append(text.add(*in_result))
            for value, begin in zip(values, (first, text.add("%pixels", "%K")), strict=False):
                entry = text.value(text.add(begin, number))
                text.lines.append(f"memref.store {text.value(value)}, %table[{entry}] : memref<?xindex>")

    fill(chain, [f"%block{loop}" for loop in chain], 0, 2 if call.plan.shifts else 1)
    fill(sums, [f"%n{loop}" for loop in sums], "%pixels", 1)
