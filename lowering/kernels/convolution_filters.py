"""Filters of a convolution's kernel: packed by panels, read row by row, and fetched before they are needed."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING

from devscope.lowering.kernels.contraction_operands import CACHE_LINE, element_bytes
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.squares import transposed
from devscope.lowering.kernels.windowed import FLAT, converted, element_of, mask_text, strides_of, zero

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call

_FETCHED = 128
"""Elements of filters that are fetched together, of few for each step: few, so that nothing waits for them."""


def pack_filters(call: Call, text: IndexText, panel: str, panels: Index, filters: str) -> None:
    """Lines that pack one of all panels: [phases][filters / columns][k][columns]."""
    found, columns = call.found, call.columns
    to = text.mul(panel, columns, "%K")
    at: Index = 0
    number: Index = panel
    if len(call.shifts) > 1:
        phase, number = text.decode(panel, [len(call.shifts), panels])
        at = call.of_phase(text, phase, [shift.filters for shift in call.shifts])
    first = text.mul(number, columns)
    at = text.add(at, text.mul(first, f"%w_stride{call.plan.filter}"))
    left = text.min(text.sub(filters, first), columns)
    strides = {loop: strides_of(found.weights)[axis] for loop, axis in found.axes_of_weights.items()}
    # What is side by side is read so.
    sums = sorted(call.plan.sums, key=found.axes_of_weights.__getitem__)
    run = [] if strides[call.plan.filter] == 1 else _run(call, sums, strides)
    indices = dict[int, Index]()
    with ExitStack() as loops:
        for loop in sums[: len(sums) - len(run)]:
            indices[loop] = loops.enter_context(text.loop(0, f"%n{loop}"))
            at = text.add(at, text.mul(indices[loop], f"%w_stride{loop}"))
        if run:
            _pack_run(call, text, run, indices, at, to, left)
            return
        to = text.add(to, _place(call, text, indices))
        if strides[call.plan.filter] == 1:
            line = _read(call, text, at, mask_text(text, left, None, columns), columns)
            text.lines.append(_store(call, line, to, columns))
            return
        with text.loop(0, left) as filter_:
            each = text.add(at, text.mul(filter_, f"%w_stride{call.plan.filter}"))
            text.lines.append(_store(call, _read(call, text, each, None, 1), text.add(to, filter_), 1))


def _run(call: Call, sums: list[int], strides: dict[int, int | None]) -> list[int]:
    """The last loops, if any, in whose order the elements of a filter are side by side."""
    length: int | None = 1
    for number in reversed(range(len(sums))):
        extent = call.found.extent(sums[number])
        if length is None or strides[sums[number]] != length:
            return sums[number + 1 :]
        length = None if extent is None else length * extent
    return sums


def _pack_run(
    call: Call, text: IndexText, run: list[int], indices: dict[int, Index], at: Index, to: Index, left: Index
) -> None:
    """Lines that pack, of ``left`` filters, what is side by side from ``at`` on: of as many filters as a register
    has lanes, as many elements of each, which are transposed."""
    lanes, extents = call.lanes, [f"%n{loop}" for loop in run]
    length, last = text.mul(*extents), text.sub(left, 1)
    with text.loop(0, length, lanes) as begin:
        mask = mask_text(text, text.sub(length, begin), None, lanes)
        here = text.decode(begin, extents)
        places: list[Index] = []
        for lane in range(lanes):
            place = _place(call, text, {**indices, **dict(zip(run, here, strict=True))})
            if places:
                is_one = text.define(f"arith.cmpi ult, {text.add(begin, lane)}, {length} : index")
                place = text.select(is_one, place, places[-1])
            places.append(place)
            here = _next(text, here, extents)
        with text.loop(0, call.columns, lanes) as group:
            lines: list[str] = []
            for lane in range(lanes):
                # In the place of filters that there are not, the last one is read.
                filter_ = text.min(text.add(group, lane), last)
                each = text.add(at, begin, text.mul(filter_, f"%w_stride{call.plan.filter}"))
                lines.append(_read(call, text, each, mask, lanes))
            # What is behind the end goes to the last place, too: before what belongs there.
            for line, place in reversed([*zip(transposed(text, lines, call.found.element), places, strict=True)]):
                text.lines.append(_store(call, line, text.add(to, place, group), lanes))


def _next(text: IndexText, indices: list[Index], extents: list[str]) -> list[Index]:
    """Of indices in loops of ``extents``, the ones after them."""
    after: list[Index] = []
    more: Index = 1
    for index, extent in zip(reversed(indices[1:]), reversed(extents[1:]), strict=True):
        index = text.value(text.add(index, more))
        ends = text.define(f"arith.cmpi eq, {index}, {extent} : index")
        after.append(text.select(ends, 0, index))
        more = text.select(ends, 1, 0)
    return [text.add(indices[0], more), *reversed(after)]


def _place(call: Call, text: IndexText, indices: dict[int, Index]) -> Index:
    """Where in a panel a step of the sums begins."""
    step: Index = 0
    for loop in call.plan.sums:
        step = text.add(text.mul(step, f"%n{loop}"), indices[loop])
    return text.mul(step, call.columns)


def _read(call: Call, text: IndexText, at: Index, mask: str | None, size: int) -> str:
    """``size`` elements from ``at`` on, as ones of the type that is computed in."""
    found = call.found
    assert found.w is not None
    w = element_of(found.weights)
    source, line, bits = FLAT.format(w), f"vector<{size}x{w}>", f"vector<{size}xi1>"
    if mask is None:
        read = text.define(f"vector.load %W[{text.value(at)}] : {source}, {line}")
    else:
        none = text.define(f"arith.constant dense<{zero(w)}> : {line}")
        read = text.define(
            f"vector.maskedload %W[{text.value(at)}], {mask}, {none} : {source}, {bits}, {line} into {line}"
        )
    made = text.new()
    text.lines += converted(made, read, w, found.element, str(size), found.w)
    return made


def _store(call: Call, line: str, to: Index, size: int) -> str:
    of = call.found.element
    return f"vector.store {line}, %packed_w[{to}] : memref<?x{of}>, vector<{size}x{of}>"


def read_filters(call: Call) -> str:
    of, columns = call.found.packed, call.columns
    if call.packed is None:
        return f"%b_row = vector.load %packed_w[%line_at] : memref<?x{of}>, vector<{columns}x{of}>"
    assert call.found.w is not None
    w = element_of(call.found.weights)
    read = f"%b_read = vector.load %W[%line_at] : {FLAT.format(w)}, vector<{columns}x{w}>"
    return "\n".join([read, *converted("%b_row", "%b_read", w, of, str(columns), call.found.w)])


def _fetched(call: Call) -> int:
    """Elements of filters that a block of sums fetches in a step, so that all blocks together fetch as many as
    one reads, or 8; a power of two, so that whole lines of memory are fetched."""
    of_block = prod(call.blocks[loop] for loop in call.plan.chain)
    share = -(-call.columns // -(-of_block // call.rows))
    return min(1 << (share - 1).bit_length(), 8)


def fetch_steps(call: Call) -> int:
    """Steps of sums for which filters are fetched together, in front of a loop over them."""
    return max(_FETCHED // _fetched(call), 32)


def next_filters(call: Call) -> IndexText:
    """Lines for ``%ahead``, from where on a block of sums fetches filters that are needed after those of its
    steps."""
    text = IndexText("ahead_from")
    here, of_block = text.div("%i", call.rows), text.mul("%steps", _fetched(call))
    at = text.add("%panel", text.mul("%k_end", call.columns), text.mul(here, of_block))
    last = text.sub(text.mul(len(call.shifts), "%panels", call.columns, "%K"), of_block)
    text.name("%ahead", text.min(at, last))
    return text


def fetch_filters(call: Call) -> IndexText:
    """Lines that fetch filters in some steps, from ``%fetching`` on, for the caches behind the first one."""
    text, of = IndexText("ahead_of"), call.found.element
    name, type_ = "%W", FLAT.format(element_of(call.found.weights))
    if call.packed is None:
        name, type_ = "%packed_w", f"memref<?x{of}>"
    at = text.add("%ahead", text.mul(text.sub("%fetching", "%k0"), _fetched(call)))
    for behind in range(0, fetch_steps(call) * _fetched(call), CACHE_LINE // element_bytes(of)):
        text.lines.append(f"memref.prefetch {name}[{text.add(at, behind)}], read, locality<2>, data : {type_}")
    return text
