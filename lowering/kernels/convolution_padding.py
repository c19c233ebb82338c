"""Steps of a convolution's sums that multiply nothing but zeros around the image, which are left out.

Zero times an infinity or a NaN is NaN, so that is done with filters alone that are finite: constants of which that
is known, and panels of filters of which what packs them finds it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.lowering.kernels.index_text import Index, IndexText

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call


def steps_inside(call: Call) -> IndexText:
    """Lines for the steps from ``%k_from`` to ``%k_to``, of those from ``%k0`` to ``%k_end``, in which there is
    anything but zeros around the image for a row of sums."""
    text = IndexText("inside")
    if call.padded is None:
        text.name("%k_from", "%k0")
        text.name("%k_to", "%k_end")
        return text
    begin, end = _taps_inside(call, text, call.padded)
    steps = text.mul(*(f"%n{loop}" for loop in call.plan.sums[1:]))
    text.name("%k_from", text.max("%k0", text.mul(begin, steps)))
    text.name("%k_to", text.min("%k_end", text.mul(end, steps)))
    return text


def _taps_inside(call: Call, text: IndexText, padded: int) -> tuple[Index, Index]:
    """Of the window along axis ``padded``, the first element and the end of those that are inside for a pixel
    of the row, at least; all if its filters are not finite."""
    axis, chain = call.found.axes[padded], call.plan.chain
    assert axis.outer is not None
    assert axis.inner is not None
    number = chain.index(axis.outer)
    each = text.mul(*(f"%block{loop}" for loop in chain[number + 1 :]))
    first, last = (
        text.div(pixel, each) for pixel in ("%i", text.min(text.add("%i", call.rows - 1), "%last_pixel"))
    )
    if any(call.blocks[loop] > 1 for loop in chain[:number]):  # the row may go on in the next image
        extent = f"%block{axis.outer}"
        images = [text.div(place, extent) for place in (first, last)]
        is_one = text.define(f"arith.cmpi eq, {images[0]}, {images[1]} : index")
        ends = (text.rem(first, extent), 0), (text.rem(last, extent), text.sub(extent, 1))
        first, last = (
            text.define(f"arith.select {is_one}, {text.value(here)}, {text.value(all_)} : index")
            for here, all_ in ends
        )
    count = f"%n{axis.inner}"
    taps = [
        text.ceildiv(
            text.max(text.sub(bound, text.add("%window_begin", text.mul(at, axis.step))), 0), axis.dilation
        )
        for bound, at in ((0, last), (f"%size{padded}", first))
    ]
    begin, end = (text.min(tap, count) for tap in taps)
    if call.asks_filters:
        entry = text.value(text.add("%first_asked", text.div("%j", call.columns)))
        is_finite = text.define(f"memref.load %table[{entry}] : memref<?xindex>")
        begin = text.mul(begin, is_finite)
        end = text.max(end, text.mul(count, text.sub(1, is_finite)))
    return begin, end


def asked(call: Call, text: IndexText) -> Index:
    """Where the table has, for each panel of filters, 1 if all of them are finite and 0 if not."""
    return text.add("%pixels", "%K", "%pixels" if call.plan.shifts else 0)


def ask_filters(call: Call, text: IndexText, panel: str) -> None:
    """Lines that write what `asked` says: 0 times what is not finite is NaN."""
    of, columns = call.found.element, call.columns
    vector = f"vector<{columns}x{of}>"
    begin = text.mul(panel, columns, "%K")
    end = text.add(begin, text.mul(columns, "%K"))
    zeros, total, at, so_far, read, product, more = (text.new() for _ in range(7))
    bounds = [text.value(each) for each in (begin, end, columns)]
    text.lines += [
        f"{zeros} = arith.constant dense<0.0> : {vector}",
        f"{total} = scf.for {at} = {bounds[0]} to {bounds[1]} step {bounds[2]} iter_args({so_far} = {zeros}) "
        f"-> ({vector}) {{",
        f"{read} = vector.load %packed_w[{at}] : memref<?x{of}>, {vector}",
        f"{product} = arith.mulf {read}, {zeros} : {vector}",
        f"{more} = arith.addf {so_far}, {product} : {vector}",
        f"scf.yield {more} : {vector}",
        "}",
    ]
    sum_ = text.define(f"vector.reduction <add>, {total} : {vector} into {of}")
    is_finite = text.define(f"arith.cmpf ord, {sum_}, {sum_} : {of}")
    flag = text.define(f"arith.index_castui {is_finite} : i1 to index")
    entry = text.value(text.add(asked(call, text), panel))
    text.lines.append(f"memref.store {flag}, %table[{entry}] : memref<?xindex>")
