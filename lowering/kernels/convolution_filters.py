"""Filters of a convolution's kernel: packed by panels, read row by row, and fetched before they are needed."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING

from devscope.lowering.kernels.contraction_operands import CACHE_LINE, element_bytes
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.windowed import FLAT, converted, element_of, strides_of

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call

_FETCHED = 128
"""Elements of filters that are fetched together, of few for each step: few, so that nothing waits for them."""


def pack_filters(call: Call, text: IndexText, panel: str, panels: Index, filters: str) -> None:
    """Lines that pack one of all panels: [phases][filters / columns][k][columns]."""
    found, columns, of = call.found, call.columns, call.found.element
    assert found.w is not None
    w = element_of(found.weights)
    source, stored = FLAT.format(w), f"vector<{columns}x{of}>"
    to = text.mul(panel, columns, "%K")
    at: Index = 0
    number: Index = panel
    if len(call.shifts) > 1:
        phase, number = text.decode(panel, [len(call.shifts), panels])
        at = call.of_phase(text, phase, [shift.filters for shift in call.shifts])
    first = text.mul(number, columns)
    at = text.add(at, text.mul(first, f"%w_stride{call.plan.filter}"))
    left = text.min(text.sub(filters, first), columns)
    mask = text.define(f"vector.create_mask {left} : vector<{columns}xi1>")
    with ExitStack() as loops:
        sums, indices = call.plan.sums, dict[int, str]()
        # What is side by side is read so.
        for loop in sorted(sums, key=lambda loop: found.axes_of_weights[loop]):
            indices[loop] = loops.enter_context(text.loop(0, f"%n{loop}"))
            at = text.add(at, text.mul(indices[loop], f"%w_stride{loop}"))
        step: Index = 0
        for loop in sums:
            step = text.add(text.mul(step, f"%n{loop}"), indices[loop])
        to = text.add(to, text.mul(step, columns))
        if strides_of(found.weights)[found.axes_of_weights[call.plan.filter]] == 1:
            read, made = text.new(), text.new()
            text.lines.append(
                f"{read} = vector.maskedload %W[{at}], {mask}, %no_w : {source}, vector<{columns}xi1>, "
                f"vector<{columns}x{w}> into vector<{columns}x{w}>"
            )
            text.lines += converted(made, read, w, of, str(columns), found.w)
            text.lines.append(f"vector.store {made}, %packed_w[{to}] : memref<?x{of}>, {stored}")
        else:
            with text.loop(0, left) as filter_:
                each = text.add(at, text.mul(filter_, f"%w_stride{call.plan.filter}"))
                element = text.define(f"memref.load %W[{each}] : {source}")
                read, made = text.define(f"vector.broadcast {element} : {w} to vector<1x{w}>"), text.new()
                text.lines += converted(made, read, w, of, "1", found.w)
                place = text.add(to, filter_)
                text.lines.append(f"vector.store {made}, %packed_w[{place}] : memref<?x{of}>, vector<1x{of}>")


def read_filters(call: Call) -> str:
    of, columns = call.found.element, call.columns
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
