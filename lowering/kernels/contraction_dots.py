"""What the template of contractions with vectors along k is filled with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from devscope.lowering.kernels.contraction_match import Contraction, Operand, Place
from devscope.lowering.kernels.contraction_operands import (
    addition,
    clamped,
    extended,
    is_float,
    matrix_type,
    operand_type,
    zero,
)
from devscope.lowering.kernels.contraction_panels import pack_lines
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row

_LANE = 16
"""Bytes; of the part of a vector register in which elements move fastest."""


def fitted(row: Row, found: Contraction) -> Row:
    """``row`` with blocks of about the same size where the result has few rows or columns."""
    numbers = dict(row.numbers)
    for number, loop in (("rows", "m"), ("columns", "n")):
        extent, most = found.limit(loop), numbers[number]
        if extent:
            numbers[number] = min(most, -(-extent // -(-extent // most)))
    return replace(row, numbers=numbers)


def of_dots(found: Contraction, numbers: Mapping[str, int], library: KernelLibrary) -> dict[str, object]:
    """``numbers``: those of the row."""
    of, lanes, rows, columns = found.element, numbers["lanes"], numbers["rows"], numbers["columns"]
    count = rows * columns
    type_ = f"vector<{lanes}x{of}>"
    add_up, size = _add_up(count, lanes, of)
    return {
        "ROOM": size,
        "COUNT": count,
        "SUMS": ", ".join([type_] * count),
        "BEGIN": ", ".join(f"%sum{n} = %zeros" for n in range(count)),
        "BEGUN": ", ".join(f"%begun#{n}" for n in range(count)),
        "PACK": "\n".join(_pack(found, x, name, numbers, library) for x, name, _, _ in _operands(found, numbers)),
        "BATCH": "\n".join(_batch(x, name) for x, name, _, _ in _operands(found, numbers)),
        "LINES_OF_A": _lines(found.a, "a", "row", rows),
        "LINES_OF_B": _lines(found.b, "b", "column", columns),
        "STEP": _step(found, numbers, [f"%sum{n}" for n in range(count)], masked=False),
        "LAST_STEP": _step(found, numbers, [f"%begun#{n}" for n in range(count)], masked=True),
        "ADD_UP": add_up,
    }


def _operands(found: Contraction, numbers: Mapping[str, int]) -> list[tuple[Operand, str, str, int]]:
    return [(found.a, "a", "row", numbers["rows"]), (found.b, "b", "column", numbers["columns"])]


def _pack(
    found: Contraction, operand: Operand, name: str, numbers: Mapping[str, int], library: KernelLibrary
) -> str:
    """Lines that pack an operand: [panels of k][lines][lanes], where there are lines for whole ``depth``s."""
    extent = "%M" if name == "a" else "%N"
    if operand.place is Place.PANELS:
        return f"%{name}_deep = arith.addi {extent}, %0 : index"
    if operand.place is Place.IN_PLACE:
        return ""
    lanes, depth = numbers["lanes"], numbers["depth"]
    pack = pack_lines(found, operand, lanes, depth, library)
    types = f"{matrix_type(operand.element)}, index, memref<?x{found.element}>" + ", index" * 6
    return f"""%{name}_depth = arith.constant {depth} : index
        %{name}_parts = arith.ceildivui {extent}, %{name}_depth : index
        %{name}_deep = arith.muli %{name}_parts, %{name}_depth : index
        %{name}_panel = arith.muli %{name}_deep, %lanes : index
        %{name}_panels = arith.ceildivui %K, %lanes : index
        %{name}_size = arith.muli %{name}_panels, %{name}_panel : index
        %{name}_to_pack = arith.muli %{name}_panels, %batch : index
        %{name}_packers = arith.minsi %tasks, %{name}_to_pack : index
        scf.parallel (%task) = (%0) to (%{name}_packers) step (%1) {{
          scf.for %number = %task to %{name}_to_pack step %{name}_packers {{
            %b = arith.divui %number, %{name}_panels : index
            %panel = arith.remui %number, %{name}_panels : index
            %begin = arith.muli %number, %{name}_panel : index
            %first = arith.muli %panel, %lanes : index
            func.call @{pack}(%{name.upper()}, %b, %packed_{name}, %begin, %lanes, %first, %K, %0, {extent})
              : ({types}) -> ()
          }}
          scf.reduce
        }}"""


def _batch(operand: Operand, name: str) -> str:
    return f"%{name}_behind = arith.muli %b, %{name}_size : index" if operand.place is Place.TO_PACK else ""


def _lines(operand: Operand, name: str, line: str, count: int) -> str:
    """Indices of lines, and where they begin if the operand is packed."""
    text = [clamped(line, count, f"%{line}", f"%last_{line}")]
    for number in range(count) if operand.place is not Place.IN_PLACE else ():
        text.append(f"%{name}_in_panel{number} = arith.muli %{line}{number}, %lanes : index")
        if operand.place is Place.TO_PACK:
            text.append(f"%{name}_at{number} = arith.addi %{name}_in_panel{number}, %{name}_behind : index")
        else:
            text.append(f"%{name}_at{number} = arith.addi %{name}_in_panel{number}, %0 : index")
    return "\n".join(text)


def _step(found: Contraction, numbers: Mapping[str, int], sums: Sequence[str], masked: bool) -> str:
    """The products of ``lanes`` steps of k are added to ``sums``; ``masked``: of those that are ``%inside``."""
    of, lanes = found.element, numbers["lanes"]
    k, text = "%whole" if masked else "%k", list[str]()
    for operand, name, line, count in _operands(found, numbers):
        packs = operand.place is Place.TO_PACK
        source = of if packs else operand.element
        vector = f"vector<{lanes}x{source}>"
        buffer, type_ = f"%{name.upper()}", operand_type(operand)
        if packs:
            buffer, type_ = f"%packed_{name}", f"memref<?x{of}>"
        if operand.place is not Place.IN_PLACE:
            text.append(f"%{name}_step = arith.muli {k}, %{name}_deep : index")
        if masked:
            text.append(f"%{name}_nothing = arith.constant dense<{zero(source)}> : {vector}")
        for number in range(count):
            at = f"%b, %{line}{number}, {k}"
            if operand.place is not Place.IN_PLACE:
                text.append(f"%{name}_k{number} = arith.addi %{name}_at{number}, %{name}_step : index")
                at = f"%{name}_k{number}" if packs else f"%b, %{name}_k{number}"
            read = f"vector.load {buffer}[{at}] : {type_}, {vector}"
            if masked:
                types = f"{type_}, vector<{lanes}xi1>, {vector} into {vector}"
                read = f"vector.maskedload {buffer}[{at}], %inside, %{name}_nothing : {types}"
            text.append(f"%{name}_read{number} = {read}")
            text.append(extended(f"%{name}{number}", f"%{name}_read{number}", source, found, f"{lanes}"))
    type_, columns = f"vector<{lanes}x{of}>", numbers["columns"]
    for number, total in enumerate(sums):
        a, b = f"%a{number // columns}", f"%b{number % columns}"
        if is_float(of):
            text.append(f"%more{number} = vector.fma {a}, {b}, {total} : {type_}")
        else:
            text.append(f"%product{number} = arith.muli {a}, {b} : {type_}")
            text.append(f"%more{number} = arith.addi %product{number}, {total} : {type_}")
    names = ", ".join(f"%more{number}" for number in range(len(sums)))
    text.append(f"scf.yield {names} : {', '.join([type_] * len(sums))}")
    return "\n".join(text)


def _add_up(count: int, lanes: int, of: str) -> tuple[str, int]:
    """Lines that store the sum of each of ``%products`` in ``%room``, and how many elements that has."""
    if lanes & (lanes - 1):
        return _one_by_one(count, lanes, of), count
    type_, add = f"vector<{lanes}x{of}>", addition(of)
    size = -(-count // lanes) * lanes
    bytes_ = int(of.strip("fi")) // 8
    text: list[str] = []
    for first in range(0, count, lanes):
        some = min(lanes, count - first)
        # Which product each lane is a part of the sum of; two vectors become one of twice as many products.
        parts = [(f"%products#{first + n}", [n] * lanes) for n in range(some)]
        width = lanes
        while width > 1:
            half, made = width // 2, list[tuple[str, list[int]]]()
            for number in range(0, len(parts), 2):
                (one, of_one), (other, of_other) = parts[number], parts[min(number + 1, len(parts) - 1)]
                places = _halves(lanes, width, max(half, min(lanes, _LANE // bytes_)))
                name = f"%t{first}_{width}_{number}"
                text += [
                    f"{name}_{side} = vector.shuffle {one}, {other} {[place + side * half for place in places]}"
                    f" : {type_}, {type_}"
                    for side in range(2)
                ]
                text.append(f"{name} = {add} {name}_0, {name}_1 : {type_}")
                made.append((name, [(of_one + of_other)[place] for place in places]))
            parts, width = made, half
        ((total, owners),) = parts
        order = [owners.index(min(n, some - 1)) for n in range(lanes)]
        text += [
            f"%sorted{first} = vector.shuffle {total}, {total} {order} : {type_}, {type_}",
            f"%first{first} = arith.constant {first} : index",
            f"vector.store %sorted{first}, %room[%first{first}] : memref<{size}x{of}>, {type_}",
        ]
    return "\n".join(text), size


def _halves(lanes: int, width: int, together: int) -> list[int]:
    """The first half of each ``width`` lanes of two vectors, those of the one before those of the other in every
    ``together`` lanes, or in all."""
    firsts = [lane for lane in range(lanes) if lane % width < width // 2]
    groups = [firsts]
    if together > width // 2:  # elements stay in their part of the register
        groups = [[lane for lane in firsts if lane // together == part] for part in range(lanes // together)]
    return [place for group in groups for place in (*group, *(lane + lanes for lane in group))]


def _one_by_one(count: int, lanes: int, of: str) -> str:
    text: list[str] = []
    for number in range(count):
        text += [
            f"%total{number} = vector.reduction <add>, %products#{number} : vector<{lanes}x{of}> into {of}",
            f"%place{number} = arith.constant {number} : index",
            f"memref.store %total{number}, %room[%place{number}] : memref<{count}x{of}>",
        ]
    return "\n".join(text)
