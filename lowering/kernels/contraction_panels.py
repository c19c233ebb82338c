"""Panels of A and B: what packs them, and how they are read."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from devscope.lowering.kernels.contraction_match import Contraction, Operand, Place
from devscope.lowering.kernels.contraction_operands import (
    CACHE_LINE,
    clamped,
    element_bytes,
    extended,
    matrix_type,
    operand_type,
    zero,
)
from devscope.lowering.kernels.contraction_words import to_words
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.partial_stores import partial_store, parts
from devscope.lowering.kernels.table import Row

_MOST_LINES = 8

_LINES_AT_ONCE = 128
"""Rows or columns that are packed step by step of k, about: a panel may take only a part of a cache line, and
panel by panel, lines at a distance that is a power of two have left the cache before the next one reads the rest.
More would leave too little to other threads."""


_ALL_STEPS = 1 << 40
"""A result that has fewer digits than its sums is not stored between two parts of a sum."""


def steps_of_k(found: Contraction, row: Row) -> int:
    """That are packed at a time, at most."""
    return _ALL_STEPS if found.c.element != found.element else row.numbers["steps"]


def apart(steps: int) -> int:
    """How many steps a panel of so many has room for, so that panels begin in all sets of a cache: an odd number.

    contraction.mlir has the same.
    """
    return steps | 1


class Packing(NamedTuple):
    """What packs a part of A or B: a call for a part of matrix ``%b``."""

    call: str
    lines: int
    """Of a part: rows of A or columns of B."""


def pack_tasks(packings: Mapping[str, Packing]) -> str:
    """Tasks that pack panels of A, of B, or of both; of B once for all rows."""
    pack = "\n".join(packing.call for packing in packings.values())
    if len(packings) == 2:
        pack = f"""%is_a = arith.cmpi slt, %part_of_all, %a_parts : index
            scf.if %is_a {{
              {packings["a"].call}
            }} else {{
              {packings["b"].call}
            }}"""
    counts = {"a": "arith.constant 0 : index", "b": "arith.constant 0 : index"}
    sizes = list[str]()
    for name, packing in packings.items():
        sizes.append(f"%{name}_lines = arith.constant {packing.lines} : index")
        counts[name] = f"arith.ceildivui {'%m' if name == 'a' else '%n'}, %{name}_lines : index"
    return f"""{" ".join(sizes)}
        %a_parts = {counts["a"]}
        %n_parts = {counts["b"]}
        %b_parts = arith.select %is_new, %n_parts, %0 : index
        %parts = arith.addi %a_parts, %b_parts : index
        %to_pack = arith.muli %parts, %together : index
        %packers = arith.minsi %tasks, %to_pack : index
        scf.parallel (%task) = (%0) to (%packers) step (%1) {{
          scf.for %number = %task to %to_pack step %packers {{
            %slot = arith.divui %number, %parts : index
            %part_of_all = arith.remui %number, %parts : index
            %b = arith.addi %from, %slot : index
            {pack}
          }}
          scf.reduce
        }}"""


class TaskPacking(NamedTuple):
    """How each task packs the columns of B that it needs by itself, on its stack, so that they stay in the caches
    of its core: what is packed for all tasks passes the cache that they share.
    """

    room: str
    pack: str


def fits_tasks(found: Contraction, row: Row) -> bool:
    """Whether tasks can pack B, each for itself: one has all rows, and its columns fit its stack."""
    m, numbers = found.extent("m"), row.numbers
    few = m is not None and m <= numbers["block_rows"] and m < numbers["many_rows"]
    size = _task_elements(found, row) * element_bytes(found.packed)
    return few and found.steps_at_once == 1 and size <= numbers.get("stack", 0)


def _task_elements(found: Contraction, row: Row) -> int:
    most, k, depth = steps_of_k(found, row), found.extent("k"), row.numbers["depth"]
    return apart(-(-(most if k is None else min(k, most)) // depth) * depth) * row.numbers["part_columns"]


def task_packing(found: Contraction, row: Row, library: KernelLibrary) -> TaskPacking:
    """Of a B that is to be packed in tasks."""
    pack, is_lines = _packer(found, found.b, "b", row, library)
    static, type_ = f"memref<{_task_elements(found, row)}x{found.packed}>", f"memref<?x{found.packed}>"
    room = f"""%room_of_b = memref.alloca() {{alignment = 64 : i64}} : {static}
        %packed_b = memref.cast %room_of_b : {static} to {type_}"""
    if not is_lines:
        places = ["%0", "%first_of_task", "%N", "%k0", "%steps", "%columns_of_task", "%b_panel"]
        call = f"""%columns_of_task = arith.subi %j_end, %j_begin : index
            %first_of_task = arith.addi %n0, %j_begin : index
            {_call(pack, found, "b", places)}"""
        return TaskPacking(room, call)
    places = ["%to_pack_at", "%columns", "%first_to_pack", "%N", "%k0", "%steps"]
    call = f"""scf.for %to_pack_j = %j_begin to %j_end step %columns {{
          %first_to_pack = arith.addi %n0, %to_pack_j : index
          {_panel_of_task("%to_pack_at", "%to_pack_j")}
          {_call(pack, found, "b", places)}
        }}"""
    return TaskPacking(room, call)


def _call(pack: str, found: Contraction, name: str, places: Sequence[str]) -> str:
    """Of what `_packer` gives, for matrix ``%b`` of A or B. ``places``: from where on, how many, and to where."""
    operand = found.a if name == "a" else found.b
    types = f"{matrix_type(operand.element)}, index, memref<?x{found.packed}>{', index' * len(places)}"
    return f"func.call @{pack}(%{name.upper()}, %b, %packed_{name}, {', '.join(places)}) : ({types}) -> ()"


def _panel_of_task(to: str, column: str) -> str:
    """Where the panel from ``column`` on begins in what the task has packed."""
    return f"""{to}_here = arith.subi {column}, %j_begin : index
        {to}_number = arith.divui {to}_here, %columns : index
        {to} = arith.muli {to}_number, %b_panel : index"""


def packing(found: Contraction, operand: Operand, name: str, row: Row, library: KernelLibrary) -> Packing:
    """By a function that packs panels of A or B, the same for all with these element types."""
    pack, is_lines = _packer(found, operand, name, row, library)
    of_a = ("%part_of_all", "rows", "M", "m0", "m")
    part, lines, extent, first, here = of_a if name == "a" else ("%part_of_b", "columns", "N", "n0", "n")
    panels = 1 if is_lines else max(1, _LINES_AT_ONCE // row.numbers[lines])
    before = "" if name == "a" else "%part_of_b = arith.subi %part_of_all, %a_parts : index"
    places = [f"%{name}_first", f"%{extent}", "%k0", "%steps"]
    places = [f"%{lines}", *places] if is_lines else [*places, f"%{name}_here", f"%{name}_panel"]
    call = f"""{before}
        %{name}_in_block = arith.muli {part}, %{name}_lines : index
        %{name}_rest = arith.subi %{here}, %{name}_in_block : index
        %{name}_here = arith.minsi %{name}_rest, %{name}_lines : index
        %{name}_first = arith.addi %{first}, %{name}_in_block : index
        %{name}_begin = arith.muli %slot, %{name}_size : index
        %{name}_part = arith.constant {panels} : index
        %{name}_panels = arith.muli {part}, %{name}_part : index
        %{name}_behind = arith.muli %{name}_panels, %{name}_panel : index
        %{name}_offset = arith.addi %{name}_begin, %{name}_behind : index
        {_call(pack, found, name, [f"%{name}_offset", *places])}"""
    return Packing(call, panels * row.numbers[lines])


def _packer(found: Contraction, operand: Operand, name: str, row: Row, library: KernelLibrary) -> tuple[str, bool]:
    """The function that packs panels of A or B, and whether it is `pack_lines`, which packs one of them."""
    numbers, is_a = row.numbers, name == "a"
    width = numbers["rows" if is_a else "columns"]
    if found.is_lines(operand):
        return pack_lines(found, operand, width, numbers["depth"], library, is_a), True
    return _pack_wide(found, operand, width, numbers["wide"], library, is_a), False


def _pack_wide(
    found: Contraction, operand: Operand, width: int, wide: int, library: KernelLibrary, is_a: bool
) -> str:
    source, steps = operand.element, found.steps_at_once
    wide = min(wide, 1 << (width - 1).bit_length())
    rows = [f"%read{number}" for number in range(steps)]
    type_, line = matrix_type(source), f"vector<{wide}x{source}>"
    whole, edge = list[str](), [f"%no_line = arith.constant dense<{zero(source)}> : {line}"]
    for number, row in enumerate(rows):
        at = [
            f"%step{number} = arith.constant {number} : index",
            f"%k{number} = arith.addi %k, %step{number} : index",
        ]
        whole += [*at, f"{row} = vector.load %matrix[%b, %k{number}, %at] : {type_}, {line}"]
        edge += [
            *at,
            f"%is_step{number} = arith.cmpi slt, %k{number}, %end : index",
            f"{row} = scf.if %is_step{number} -> ({line}) {{",
            f"%some{number} = vector.transfer_read %matrix[%b, %k{number}, %at], %nothing : {type_}, {line}",
            f"scf.yield %some{number} : {line}",
            "} else {",
            f"scf.yield %no_line : {line}",
            "}",
        ]
    join = (
        f"%all = arith.bitcast %read0 : {line} to {line}"
        if steps == 1
        else _interleaved("%all", rows, wide, source)
    )
    values = {
        "FROM": source,
        "TO": found.packed,
        "WIDTH": width,
        "WIDE": wide,
        "STEPS": steps,
        "LINE": CACHE_LINE // element_bytes(source),
        "ZERO": zero(source),
        "WHOLE": "\n".join([*whole, join]),
        "EDGE": "\n".join([*edge, join]),
        "CONVERT": _packed("%elements", "%all", source, found, wide, is_a),
        "WRITE": _write_wide(width, wide, found.packed),
    }
    return library.symbol("pack", values)


def _write_wide(width: int, wide: int, of: str) -> str:
    """Without a mask where it is known how many of ``wide`` elements there are: AVX2 is slow with them."""
    row = f"memref<?x{of}, strided<[1], offset: ?>>"
    if width < wide:
        places = {begin: f"%part{begin}" for begin, _ in parts(width)}
        text = [f"{place} = arith.constant {begin} : index" for begin, place in places.items()]
        return "\n".join([*text, *partial_store("%elements", wide, width, "%row", places, row, of)])
    inside = " {in_bounds = [true]}" if width % wide == 0 else ""
    return f"vector.transfer_write %elements, %row[%line]{inside} : vector<{wide}x{of}>, {row}"


def pack_lines(
    found: Contraction, operand: Operand, width: int, depth: int, library: KernelLibrary, is_a: bool = False
) -> str:
    """The function that packs a panel of ``width`` lines of ``operand``, or of a multiple of it."""
    source = operand.element
    lines = min(_MOST_LINES, width & -width)  # that are transposed at once: a power of two
    if width < _MOST_LINES:
        lines = 1 << (width - 1).bit_length()
    values = {
        "FROM": source,
        "TO": found.packed,
        "STEPS": found.steps_at_once,
        "LINES": lines,
        "DEPTH": depth,
        "ZERO": zero(source),
        "TRANSPOSE": _transpose(found, source, lines, min(lines, width), depth, is_a),
    }
    return library.symbol("pack_lines", values)


def _transpose(found: Contraction, source: str, lines: int, kept: int, depth: int, is_a: bool) -> str:
    """``lines`` rows, a power of two, of ``depth`` elements each, of which so many are ``kept`` as columns."""
    of, type_ = found.packed, matrix_type(source)
    line = f"vector<{depth}x{source}>"
    text = [clamped("at", lines, "%at", "%last")]
    # A mask is needed behind the last step only, and there is none for some types.
    places = [f"%matrix[%b, %at{number}, %k]" for number in range(lines)]
    all_ = [f"%all{n} = vector.load {place} : {type_}, {line}" for n, place in enumerate(places)]
    some = [
        f"%some{n} = vector.transfer_read {place}, %nothing : {type_}, {line}" for n, place in enumerate(places)
    ]
    ends = [", ".join(f"%{name}{n}" for n in range(lines)) for name in ("all", "some")]
    types = ", ".join([line] * lines)
    text.append(f"%reads:{lines} = scf.if %is_inside -> ({types}) {{")
    text += [*all_, f"scf.yield {ends[0]} : {types}", "} else {", *some, f"scf.yield {ends[1]} : {types}", "}"]
    names, depth = [f"%v{number}" for number in range(lines)], depth // found.steps_at_once
    text += [_packed(name, f"%reads#{number}", source, found, depth, is_a) for number, name in enumerate(names)]
    text.append(_interleaved("%all_lines", names, depth, of))
    whole = "%all_lines" if lines > 1 else names[0]
    for step in range(depth):
        text.append(
            f"%s{step} = vector.extract_strided_slice {whole} {{offsets = [{step * lines}], sizes = [{lines}], "
            f"strides = [1]}} : vector<{lines * depth}x{of}> to vector<{lines}x{of}>"
        )
        if step:
            text.append(f"%p{step} = arith.addi %p{step - 1}, %width : index")
        places = {begin: f"%p{step}" if begin == 0 else f"%p{step}_{begin}" for begin, _ in parts(kept)}
        for begin, place in places.items():
            if begin:
                text += [
                    f"%begin{step}_{begin} = arith.constant {begin} : index",
                    f"{place} = arith.addi %p{step}, %begin{step}_{begin} : index",
                ]
        text += partial_store(f"%s{step}", lines, kept, "%packed", places, f"memref<?x{of}>", of)
    return "\n".join(text)


def _interleaved(to: str, names: Sequence[str], size: int, element: str) -> str:
    """Vectors of ``size`` elements, a power of two of them, as columns of a matrix, in ``to``.

    Vectors i and i + lines / 2 are interleaved, then the same is done with what that gives.
    """
    text = list[str]()
    while len(names) > 1:
        half = len(names) // 2
        made = [f"{to}_{size}_{number}" if half > 1 else to for number in range(half)]
        text += [
            f"{new} = vector.interleave {one}, {other} : vector<{size}x{element}> -> vector<{2 * size}x{element}>"
            for new, one, other in zip(made, names[:half], names[half:], strict=True)
        ]
        names, size = made, 2 * size
    return "\n".join(text)


def _packed(to: str, value: str, source: str, found: Contraction, count: int, is_a: bool) -> str:
    """A vector of elements of A or B as ``count`` of those of panels."""
    if found.words:
        return to_words(to, value, found.words, is_a, count)
    return extended(to, value, source, found, f"{count}")


def panel(name: str, local: str, line: str, operand: Operand, width: int) -> str:
    """Where the panel of ``width`` lines begins: ``%a_at`` or ``%b_at``, in elements."""
    if operand.place is Place.TO_PACK_IN_TASKS:
        return _panel_of_task(f"%{name}_at", local)
    if operand.place is Place.TO_PACK:
        return f"""%{name}_number = arith.divui {local}, %{"rows" if name == "a" else "columns"} : index
            %{name}_behind = arith.muli %{name}_number, %{name}_panel : index
            %{name}_begin = arith.muli %slot, %{name}_size : index
            %{name}_at = arith.addi %{name}_begin, %{name}_behind : index"""
    # Panels of all steps of k, [lines / width][K][width]; `line` is a multiple of the width.
    return f"""%{name}_steps = arith.muli {line}, %all_turns : index
        %{name}_width = arith.constant {width} : index
        %{name}_behind = arith.muli %turns_before, %{name}_width : index
        %{name}_at = arith.addi %{name}_steps, %{name}_behind : index"""


def read_panel(to: str, name: str, operand: Operand, width: int, found: Contraction) -> str:
    """The elements of one step of k."""
    is_packed = operand.place is not Place.PANELS
    element = found.packed if is_packed else operand.element
    of = f"vector<{width}x{element}>"
    at = f"""%{name}_line = arith.muli %k, %{"rows" if name == "a" else "columns"} : index
        %{name}_index = arith.addi %{name}_at, %{name}_line : index"""
    if is_packed:
        read, type_ = f"%packed_{name}[", f"memref<?x{found.packed}>"
    else:
        read, type_ = f"%{name.upper()}[%b, ", operand_type(operand)
    made = to if is_packed or found.words else f"%{name}_packed"
    if name == "a" and not found.words:
        # One by one, as each becomes a vector: of 6 in a vector, AVX2 would shuffle the last two.
        load = _elements(made, read, f"%{name}_index", width, type_, of)
    else:
        load = f"{made} = vector.load {read}%{name}_index] : {type_}, {of}"
    text = f"{at}\n{load}"
    return text if made == to else f"{text}\n{extended(to, made, element, found, f'{width}')}"


def _elements(to: str, before: str, index: str, width: int, type_: str, of: str) -> str:
    """``to``: the elements from ``index`` on, each loaded by itself; ``before``: the memory, up to the place."""
    lines = list[str]()
    for number in range(width):
        lines += [
            f"{to}_by{number} = arith.constant {number} : index",
            f"{to}_at{number} = arith.addi {index}, {to}_by{number} : index",
            f"{to}_{number} = memref.load {before}{to}_at{number}] : {type_}",
        ]
    elements = ", ".join(f"{to}_{number}" for number in range(width))
    return "\n".join([*lines, f"{to} = vector.from_elements {elements} : {of}"])
