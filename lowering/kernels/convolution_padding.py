"""Steps of a convolution's sums that multiply nothing but zeros around the image, which are left out.

Zero times an infinity or a NaN is NaN, so that is done with filters alone that are finite: constants of which that
is known, and panels of filters of which what packs them finds it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.lowering.kernels.index_text import Index, IndexText

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call


def runs_inside(call: Call) -> IndexText:
    """Lines for the steps in which there is anything but zeros around the image for a row of sums: ``%runs`` of
    them, the first one from ``%run_begin`` on, of ``%run_length`` each, ``%run_distance`` apart."""
    text = IndexText("runs_inside")
    runs: Index = 1
    begin: Index = 0
    length: Index = "%K"
    distance: Index = "%K"
    if call.padded:
        first, *others = (_taps_inside(call, text, number) for number in call.padded)
        distance = text.mul(*(f"%n{loop}" for loop in call.plan.sums[1:]))
        taps = text.sub(first[1], first[0])
        begin, length = text.mul(first[0], distance), text.mul(taps, distance)
        for from_, to in others:
            each = text.mul(*(f"%n{loop}" for loop in call.plan.sums[2:]))
            part = text.mul(text.sub(to, from_), each)
            is_all = text.define(f"arith.cmpi eq, {text.value(part)}, {text.value(distance)} : index")
            runs = text.select(is_all, 1, taps)
            begin, length = text.add(begin, text.mul(from_, each)), text.select(is_all, length, part)
    for name, index in (("runs", runs), ("run_begin", begin), ("run_length", length), ("run_distance", distance)):
        text.name(f"%{name}", index)
    return text


def steps_inside(call: Call) -> IndexText:
    """Lines for the steps from ``%k_from`` to ``%k_to`` of ``%run``, of those from ``%k0`` to ``%k_end``."""
    text = IndexText("inside")
    if not call.padded:
        text.name("%k_from", "%k0")
        text.name("%k_to", "%k_end")
        return text
    begin = text.add("%run_begin", text.mul("%run", "%run_distance"))
    text.name("%k_from", text.max("%k0", begin))
    text.name("%k_to", text.min("%k_end", text.add(begin, "%run_length")))
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
        first, last = (text.select(is_one, here, all_) for here, all_ in ends)
    count = f"%n{axis.inner}"
    taps = [
        text.ceildiv(
            text.max(text.sub(bound, text.add(f"%window_begin{padded}", text.mul(at, axis.step))), 0),
            axis.dilation,
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
