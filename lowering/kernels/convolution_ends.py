"""How the sums of a convolution end: they are added to what the result holds, go through the epilogue, are rounded
and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.lowering.kernels.contraction_operands import CACHE_LINE, element_bytes
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.squares import transposed
from devscope.lowering.kernels.windowed import element_of, zero

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call


def prefetch(call: Call, c_type: str, extra_types: list[str]) -> IndexText:
    """Lines that fetch where sums of a tile will go, and what the epilogue reads there, before these are made."""
    text = IndexText("f")
    if call.plan.shifts:
        return text
    buffers = [("%C", call.result, c_type, "write")]
    for number, ((value, axes), type_) in enumerate(zip(call.extras, extra_types, strict=True)):
        if None not in call.plan.buffer_axes(axes)[1:]:
            buffers.append((f"%extra{number}", value, type_, "read"))

    def fetch(line: Index, column: Index) -> None:
        at = f"%b, {text.value(line)}, {text.value(column)}"
        for name, _, type_, access in buffers:
            text.lines.append(f"memref.prefetch {name}[{at}], {access}, locality<3>, data : {type_}")

    if call.plan.filters_last:
        elements = CACHE_LINE // max(element_bytes(element_of(value)) for _, value, _, _ in buffers)
        last = text.sub("%N", 1)
        columns = [text.min(text.add("%j", column), last) for column in range(0, call.columns, elements)]
        with text.loop("%tile", "%tile_end") as pixel:
            for column in columns:
                fetch(text.add("%p0", pixel), column)
    else:
        # Where the pixels of a tile begin, those of the tile before ended.
        filters, last = text.min(text.sub("%M", "%j"), call.columns), text.add("%p0", text.sub("%tile_end", 1))
        with text.loop(0, filters) as filter_:
            fetch(text.add("%j", filter_), last)
    return text


def end(call: Call, c_type: str, extra_types: list[str]) -> IndexText:
    """Lines that write the sums of a room, through the epilogue."""
    text, of, lanes, columns = IndexText("d"), call.found.element, call.lanes, call.columns
    if call.plan.filters_last:
        fits = _fits(text, "%j", columns, "%N")
        with text.loop("%tile", "%tile_end") as line:
            text.name("%at", text.add("%p0", line))
            text.name("%column", "%j")
            row = text.sub(line, "%room_begins")
            sums = text.define(f"vector.load %room[{row}, %0] : {_room(call)}, vector<{columns}x{of}>")
            _end_line(call, text, sums, columns, "%C", c_type, extra_types, fits)
        return text
    with text.loop("%tile", "%tile_end", lanes) as pixel, text.loop(0, columns, lanes) as filter_:
        _turn(call, text, pixel, filter_)
        begin = text.add("%j", filter_)
        left = text.min(text.sub("%M", begin), lanes)
        text.name("%column", text.add("%p0", pixel))
        fits = _fits(text, pixel, lanes, "%tile_end")
        with text.loop(0, left) as line:
            text.name("%at", text.add(begin, line))
            sums = text.define(f"vector.load %turned[{line}, %0] : {call.turned_type}, vector<{lanes}x{of}>")
            _end_line(call, text, sums, lanes, "%part", c_type, extra_types, fits)
    return text


def end_of_phase(call: Call) -> IndexText:
    """Lines that write the sums of a room to where the pixels of a phase are."""
    text, of, columns = IndexText("d"), call.found.element, call.columns
    room, c = _room(call), element_of(call.result)

    def begin_of(pixel: Index) -> tuple[Index, str]:
        """Its row in the room, and where it is in the result."""
        entry = text.add("%pixels", "%K", pixel)
        offset = text.define(f"memref.load %table[{entry}] : memref<?xindex>")
        return text.sub(pixel, "%room_begins"), offset

    filters = text.min(text.sub("%N" if call.plan.filters_last else "%M", "%j"), columns)
    if call.plan.filters_last:
        mask = text.define(f"vector.create_mask {filters} : vector<{columns}xi1>")
        line, vector, written = text.add("%c_begin", "%j"), f"vector<{columns}x{of}>", f"vector<{columns}x{c}>"
        with text.loop("%tile", "%tile_end") as pixel:
            row, offset = begin_of(pixel)
            sums = text.define(f"vector.load %room[{row}, %0] : {room}, {vector}")
            place = text.value(text.add(line, offset))
            types = f"{call.flat_result}, vector<{columns}xi1>, {written}"
            if call.adds:
                nothing = text.define(f"arith.constant dense<{zero(c)}> : {written}")
                held = f"vector.maskedload %C[{place}], {mask}, {nothing} : {types} into {written}"
                sums = _plus(text, sums, text.define(held), of, c, f"{columns}")
            sums = _rounded(text, sums, of, c, f"{columns}")
            text.lines.append(f"vector.maskedstore %C[{place}], {mask}, {sums} : {types}")
        return text
    stride = call.stride_of_result(call.plan.filter)
    line = text.add("%c_begin", text.mul("%j", stride))
    with text.loop("%tile", "%tile_end") as pixel:
        row, offset = begin_of(pixel)
        place = text.add(line, offset)
        with text.loop(0, filters) as filter_:
            sum_ = text.define(f"memref.load %room[{row}, {filter_}] : {room}")
            to = text.value(text.add(place, text.mul(filter_, stride)))
            if call.adds:
                sum_ = _plus(text, sum_, text.define(f"memref.load %C[{to}] : {call.flat_result}"), of, c)
            text.lines.append(f"memref.store {_rounded(text, sum_, of, c)}, %C[{to}] : {call.flat_result}")
    return text


def _plus(text: IndexText, sums: str, held: str, of: str, c: str, width: str = "") -> str:
    """Sums and what the result holds, numbers or vectors of so many."""
    to, from_ = (f"vector<{width}x{each}>" if width else each for each in (of, c))
    if c != of:
        held = text.define(f"arith.extf {held} : {from_} to {to}")
    return text.define(f"arith.add{'i' if zero(of) == '0' else 'f'} {sums}, {held} : {to}")


def _rounded(text: IndexText, sums: str, of: str, c: str, width: str = "") -> str:
    """As elements of the result."""
    if c == of:
        return sums
    from_, to = (f"vector<{width}x{each}>" if width else each for each in (of, c))
    return text.define(f"arith.truncf {sums} : {from_} to {to}")


def _room(call: Call) -> str:
    return f"memref<?x{call.columns}x{call.found.element}, strided<[{call.columns}, 1], offset: ?>>"


def _fits(text: IndexText, begin: Index, width: int, end: Index) -> str:
    """Whether ``width`` elements from ``begin`` on end before ``end``."""
    after = text.value(text.add(begin, width))
    return text.define(f"arith.cmpi sle, {after}, {text.value(end)} : index")


def _turn(call: Call, text: IndexText, pixel: str, filter_: str) -> None:
    """Lines that write ``lanes`` pixels of as many filters of the room to ``%turned``, filters first."""
    of, lanes = call.found.element, call.lanes
    line = f"vector<{lanes}x{of}>"
    first = text.sub(pixel, "%room_begins")
    rows = [
        text.define(f"vector.load %room[{text.add(first, number)}, {filter_}] : {_room(call)}, {line}")
        for number in range(lanes)
    ]
    for number, row in enumerate(transposed(text, rows, of)):
        text.lines.append(f"vector.store {row}, %turned[{text.value(number)}, %0] : {call.turned_type}, {line}")


def _end_line(
    call: Call, text: IndexText, sums: str, width: int, to: str, c_type: str, extra_types: list[str], fits: str
) -> None:
    """Lines that write ``sums``, a line of C from ``%at`` and ``%column`` on, of which all ``fits`` or a part."""
    of, c = call.found.element, element_of(call.result)
    written = f"vector<{width}x{c}>"
    if call.adds:
        held = text.define(f"vector.transfer_read {to}[%b, %at, %column], %nothing : {c_type}, {written}")
        sums = _plus(text, sums, held, of, c, f"{width}")
    sums = _rounded(text, sums, of, c, f"{width}")
    if call.follows is not None:
        for number, ((value, axes), type_) in enumerate(zip(call.extras, extra_types, strict=True)):
            element = element_of(value)
            target = f"vector<{width}x{element}>"
            if call.plan.buffer_axes(axes)[2] is None:
                one = text.define(f"memref.load %extra{number}[%b, %at, %column] : {type_}")
                text.lines.append(f"%operand{number} = vector.broadcast {one} : {element} to {target}")
            else:
                pad = text.define(f"arith.constant {zero(element)} : {element}")
                read = f"vector.transfer_read %extra{number}[%b, %at, %column], {pad} : {type_}, {target}"
                text.lines.append(f"%operand{number} = {read}")
        text.lines += [step.replace("$block", f"{width}x").replace("%sums", sums) for step in call.follows.steps]
        sums = call.follows.done.replace("%sums", sums)
    # Stores with masks take several times as long.
    text.lines += [
        f"scf.if {fits} {{",
        f"vector.store {sums}, {to}[%b, %at, %column] : {c_type}, {written}",
        "} else {",
        f"vector.transfer_write {sums}, {to}[%b, %at, %column] : {written}, {c_type}",
        "}",
    ]
