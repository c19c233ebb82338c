"""What the templates of contractions are filled with.

A block of sums is computed at once and ends row by row: a row is added to what the result holds, goes through the
epilogue, is rounded and written. So the text of a kernel has all that once, whatever the block is.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import gcd

from devscope.lowering.kernels.contraction_match import Contraction, Group, Operand, Place
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row

ALL_STEPS = 1 << 40
"""A result that has fewer digits than its sums is not stored between two parts of a sum."""

_ALL_LINES = 1 << 40
"""Of an operand that is not packed."""

_MOST_LINES = 8
_CACHE_LINE = 64
_FEW_STEPS = 12
"""Of an epilogue that is done to whole blocks of sums: the code of a longer one would be large."""

NARROW = "narrow"
PACKED = "contraction"
"""The template that packs its operands; it has numbers of its own, as docs/schedules.md says."""


def matrix_type(element: str) -> str:
    """How a kernel takes A, B and C: [b, lines, elements of a line]."""
    return f"memref<?x?x?x{element}, strided<[?, ?, 1], offset: ?>>"


def panels_type(element: str) -> str:
    """How a kernel takes a constant that stands in panels: [b, all panels of a matrix]."""
    return f"memref<?x?x{element}, strided<[?, 1], offset: ?>>"


def operand_type(operand: Operand) -> str:
    """How a kernel takes A or B."""
    return panels_type(operand.element) if operand.place is Place.PANELS else matrix_type(operand.element)


def element_bytes(element: str) -> int:
    return max(8, int(element.strip("bfi"))) // 8


def steps_of_k(found: Contraction, row: Row) -> int:
    return ALL_STEPS if found.c.element != found.element else row.numbers["steps"]


class Extra(Operand):
    """An operand of an epilogue, with its axes by the loops of the contraction.

    ``columns``: whether its elements differ along a row; ``side_by_side``: and those of a row are contiguous.
    """

    columns = False
    side_by_side = False

    @property
    def kernel_type(self) -> str:
        """How a kernel takes it: with all axes of the result."""
        return f"memref<?x?x?x{self.element}, strided<[?, ?, {1 if self.side_by_side else '?'}], offset: ?>>"


def extras(found: Contraction, follows: Epilogue) -> list[Extra] | None:
    """The operands of an epilogue; None where the kernel's loops are not enough to go through them, or through its
    result."""
    loops = {axis: loop for loop, axis in found.c.axes.items()}
    result = Operand(follows.result, found.c.axes)
    if result.innermost() != found.c.innermost() or not all(_is_one(result, g) for g in found.loops.values()):
        return None
    made: list[Extra] = []
    for value, axes in follows.operands:
        extra = Extra(value, {loops[axis]: number for number, axis in enumerate(axes)})
        for group in found.loops.values():
            has = [loop in extra.axes for loop in group if loop in found.c.axes]
            if any(has) and not (all(has) and _is_one(extra, group)):
                return None
        last = found.loops["n"][-1]
        extra.columns = last in extra.axes
        extra.side_by_side = extra.columns and extra.innermost() == last
        made.append(extra)
    return made


def _is_one(operand: Operand, group: Group) -> bool:
    pairs = pairwise(loop for loop in group if loop in operand.axes)
    return all(operand.is_one(outer, inner) for outer, inner in pairs)


def values(
    found: Contraction,
    row: Row,
    parameters: str,
    follows: Epilogue | None,
    extras: Sequence[Extra],
    library: KernelLibrary,
) -> dict[str, object]:
    """What the template of ``row`` is filled with. ``parameters``: of the function, with ``extras``."""
    numbers = {"rows": found.extent("m") or 1, **row.numbers}
    rows, columns = numbers["rows"], numbers["columns"]
    of, result = found.element, found.c.element
    made: dict[str, object] = {
        **{name.upper(): number for name, number in numbers.items()},
        "PARAMETERS": parameters,
        "A": operand_type(found.a),
        "B": operand_type(found.b),
        "C": matrix_type(result),
        "SUM": of,
        "RESULT": result,
        "ZERO": zero(result),
        "ZERO_OF_SUM": zero(of),
        "BLOCK": f"vector<{rows}x{columns}x{of}>",
        "LINE": f"vector<{columns}x{of}>",
        "END": _end(found, columns, follows, extras),
        "ELEMENT_OF_B": found.b.element,
        "ZERO_OF_B": zero(found.b.element),
    }
    if row.template == PACKED:
        return made | _of_packed(found, row, library, follows, extras)
    if row.template == NARROW:
        return made | _of_narrow(found, rows, columns, row.numbers["steps"])
    lanes = row.numbers["lanes"]
    products = f"vector<{columns}x{lanes}x{of}>"
    multiply_add = f"%more = vector.fma %a_rows, %b_rows, %so_far : {products}"
    if not _is_float(of):
        multiply_add = f"""%product = arith.muli %a_rows, %b_rows : {products}
            %more = arith.addi %product, %so_far : {products}"""
    a_is_lines = found.is_lines(found.a)
    return made | {
        "ELEMENT_OF_A": found.a.element,
        "ZERO_OF_A": zero(found.a.element),
        "AT_A": "%at, %k" if a_is_lines else "%k, %at",
        "MAP_OF_A": "" if a_is_lines else "{permutation_map = affine_map<(b, k, m) -> (k)>} ",
        "CONVERT_A": _extended("%a", "%a_read", found.a.element, found, f"{lanes}"),
        "CONVERT_B": _extended("%b_rows", "%b_read", found.b.element, found, f"{columns}x{lanes}"),
        "MULTIPLY_ADD": multiply_add,
    }


def _of_packed(
    found: Contraction, row: Row, library: KernelLibrary, follows: Epilogue | None, extras: Sequence[Extra]
) -> dict[str, object]:
    """Where the elements of A and of B are read, and how a whole block of sums ends."""
    rows, columns = row.numbers["rows"], row.numbers["columns"]
    to_pack = {
        name: _pack_call(found, operand, name, row, library)
        for name, operand in (("a", found.a), ("b", found.b))
        if operand.place is Place.TO_PACK
    }
    panel_of_a, read_a = _rows_of_block(rows), _read_rows(found, rows, "%k_all", "")
    if found.a.place is not Place.IN_PLACE:
        panel_of_a, read_a = _panel("a", "%i", "%row", found.a, rows), _read_panel("%a", "a", found.a, rows, found)
    block_of_b = f"{operand_type(found.b)}, vector<{columns}x{found.element}>"
    panel_of_b, read_b = "", f"%b_row = vector.load %B[%b, %k_all, %column] : {block_of_b}"
    if found.b.place is not Place.IN_PLACE:
        panel_of_b = _panel("b", "%j", "%column", found.b, columns)
        read_b = _read_panel("%b_row", "b", found.b, columns, found)
    return {
        "STEPS": steps_of_k(found, row),
        "ROWS_AT_ONCE": row.numbers["most_rows"] if "a" in to_pack else _ALL_LINES,
        "COLUMNS_AT_ONCE": row.numbers["most_columns"] if "b" in to_pack else _ALL_LINES,
        "PACK": _pack(to_pack) if to_pack else "",
        "PANEL_OF_B": panel_of_b,
        "READ_B": read_b,
        "PANEL_OF_A": panel_of_a,
        "READ_A": f"%k_all = arith.addi %k0, %k : index\n{read_a}",
        "PREFETCH": _prefetch(found, rows, columns),
        "IS_PLAIN": _is_plain(found, follows, extras),
        "WHOLE_END": _whole_end(found, row, follows, extras),
    }


def _pack(calls: Mapping[str, str]) -> str:
    """Tasks that pack panels; of B once for all rows. ``calls``: what packs a panel of A, of B, or both."""
    pack = "\n".join(calls.values())
    if len(calls) == 2:
        pack = f"""%is_a = arith.cmpi slt, %panel, %a_panels : index
            scf.if %is_a {{
              {calls["a"]}
            }} else {{
              {calls["b"]}
            }}"""
    panels_of_a = "arith.ceildivui %m, %rows" if "a" in calls else "arith.constant 0"
    panels_of_b = "arith.select %is_new, %n_panels, %0" if "b" in calls else "arith.constant 0"
    return f"""%a_panels = {panels_of_a} : index
        %n_panels = arith.ceildivui %n, %columns : index
        %b_panels = {panels_of_b} : index
        %panels = arith.addi %a_panels, %b_panels : index
        %to_pack = arith.muli %panels, %together : index
        %packers = arith.minsi %tasks, %to_pack : index
        scf.parallel (%task) = (%0) to (%packers) step (%1) {{
          scf.for %number = %task to %to_pack step %packers {{
            %slot = arith.divui %number, %panels : index
            %panel = arith.remui %number, %panels : index
            %b = arith.addi %from, %slot : index
            {pack}
          }}
          scf.reduce
        }}"""


def _prefetch(found: Contraction, rows: int, columns: int) -> str:
    """The lines of the result that a whole block is written to, while its sums are computed."""
    lines: list[str] = []
    elements, type_ = _CACHE_LINE // element_bytes(found.c.element), matrix_type(found.c.element)
    for row in range(rows):
        lines += [f"%r{row} = arith.constant {row} : index", f"%row_of{row} = arith.addi %row, %r{row} : index"]
        for column in range(0, columns, elements):
            at = f"%at{row}_{column}"
            lines += [
                f"%c{row}_{column} = arith.constant {column} : index",
                f"{at} = arith.addi %column, %c{row}_{column} : index",
                f"memref.prefetch %C[%b, %row_of{row}, {at}], write, locality<3>, data : {type_}",
            ]
    return "\n".join(lines)


def _ends_whole(found: Contraction, follows: Epilogue | None, extras: Sequence[Extra]) -> bool:
    """Whether whole blocks of sums end in registers, also with the epilogue: one that is not unrolled to much."""
    if found.c.element != found.element:
        return False
    readable = all(extra.side_by_side or not extra.columns for extra in extras)
    return follows is None or (len(follows.steps) <= _FEW_STEPS and readable)


def _is_plain(found: Contraction, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """Whether whole blocks end in registers: at least those of sums to which more is added."""
    if found.c.element != found.element:
        return "%is_plain = arith.constant false"
    if _ends_whole(found, follows, extras):
        return "%is_plain = arith.constant true"
    return "%is_plain = arith.xori %is_last, %only : i1"


def _whole_end(found: Contraction, row: Row, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """`_end` for a whole block of sums."""
    if found.c.element != found.element:
        return ""
    rows, columns = row.numbers["rows"], row.numbers["columns"]
    type_, shape = matrix_type(found.element), f"{rows}x{columns}x"
    block, at, inside = f"vector<{shape}{found.element}>", "%C[%b, %row, %column]", "{in_bounds = [true, true]}"
    text = f"""%all_sums = scf.if %is_first -> ({block}) {{
          scf.yield %sums : {block}
        }} else {{
          %held = vector.transfer_read {at}, %nothing {inside} : {type_}, {block}
          %more_sums = {_add(found.element)} %sums, %held : {block}
          scf.yield %more_sums : {block}
        }}"""
    if follows is None or not _ends_whole(found, follows, extras):
        return f"{text}\nvector.transfer_write %all_sums, {at} {inside} : {block}, {type_}"
    lines = [_read_whole_extra(number, extra, rows, columns) for number, extra in enumerate(extras)]
    lines += [step.replace("$block", shape).replace("%sums", "%all_sums") for step in follows.steps]
    steps = "\n".join(lines)
    return f"""{text}
        %to_write = scf.if %is_last -> ({block}) {{
          {steps}
          scf.yield {follows.done.replace("%sums", "%all_sums")} : {block}
        }} else {{
          scf.yield %all_sums : {block}
        }}
        vector.transfer_write %to_write, {at} {inside} : {block}, {type_}"""


def _read_whole_extra(number: int, extra: Extra, rows: int, columns: int) -> str:
    """The elements of an operand of an epilogue for a whole block of sums."""
    name, block = f"%extra{number}", f"vector<{rows}x{columns}x{extra.element}>"
    if extra.columns:
        return f"""%pad{number} = arith.constant {zero(extra.element)} : {extra.element}
            %operand{number} = vector.transfer_read {name}[%b, %row, %column], %pad{number}
              {{in_bounds = [true, true]}} : {extra.kernel_type}, {block}"""
    text = [f"%x{number}_0 = ub.poison : {block}"]
    line = f"vector<{columns}x{extra.element}>"
    for row in range(rows):
        at = f"{number}_{row}"
        to = f"%operand{number}" if row == rows - 1 else f"%x{number}_{row + 1}"
        text += [
            f"%i{at} = arith.constant {row} : index",
            f"%j{at} = arith.addi %row, %i{at} : index",
            f"%e{at} = memref.load {name}[%b, %j{at}, %column] : {extra.kernel_type}",
            f"%l{at} = vector.broadcast %e{at} : {extra.element} to {line}",
            f"{to} = vector.insert %l{at}, %x{at} [{row}] : {line} into {block}",
        ]
    return "\n".join(text)


def _panel(name: str, local: str, line: str, operand: Operand, width: int) -> str:
    """Where the panel of ``width`` lines begins: ``%a_at`` or ``%b_at``, in elements."""
    if operand.place is Place.TO_PACK:
        return f"""%{name}_number = arith.divui {local}, %{"rows" if name == "a" else "columns"} : index
            %{name}_behind = arith.muli %{name}_number, %{name}_panel : index
            %{name}_begin = arith.muli %slot, %{name}_size : index
            %{name}_at = arith.addi %{name}_begin, %{name}_behind : index"""
    # Panels of all steps of k, [lines / width][K][width]; `line` is a multiple of the width.
    return f"""%{name}_steps = arith.muli {line}, %K : index
        %{name}_width = arith.constant {width} : index
        %{name}_behind = arith.muli %k0, %{name}_width : index
        %{name}_at = arith.addi %{name}_steps, %{name}_behind : index"""


def _read_panel(to: str, name: str, operand: Operand, width: int, found: Contraction) -> str:
    """The elements of one step of k."""
    of = f"vector<{width}x{operand.element if operand.place is Place.PANELS else found.element}>"
    at = f"""%{name}_line = arith.muli %k, %{"rows" if name == "a" else "columns"} : index
        %{name}_index = arith.addi %{name}_at, %{name}_line : index"""
    if operand.place is Place.TO_PACK:
        return f"""{at}
            {to} = vector.load %packed_{name}[%{name}_index] : memref<?x{found.element}>, {of}"""
    return f"""{at}
        %{name}_packed = vector.load %{name.upper()}[%b, %{name}_index] : {operand_type(operand)}, {of}
        {_extended(to, f"%{name}_packed", operand.element, found, f"{width}")}"""


def _of_narrow(found: Contraction, rows: int, columns: int, steps: int) -> dict[str, object]:
    """Products of so many steps of k are added to a block of sums in one go; A is read before."""

    def add(step: int) -> str:
        block = f"vector<{rows}x{found.element}>, vector<{columns}x{found.element}>"
        return f"""{_read_columns(found, columns, f"%at_k{step}", f"%b{step}", f"{step}")}
            %sums{step + 1} = vector.outerproduct %a{step}, %b{step}, %sums{step} : {block}"""

    def read(step: int) -> str:
        return f"""%step{step} = arith.constant {step} : index
            %at_k{step} = arith.addi %k0, %step{step} : index
            {_read_rows(found, rows, f"%at_k{step}", f"{step}")}"""

    return {
        "PANEL_OF_A": _rows_of_block(rows),
        "READ_ALL_A": "\n".join(map(read, range(steps))),
        "ADD_ALL": "\n".join(map(add, range(steps))),
        "READ_A": read(0),
        "ADD": add(0),
        "ADD_LINES": f"%more = {_add(found.element)} %so_far, %of_part : vector<{columns}x{found.element}>",
    }


def _read_columns(found: Contraction, columns: int, k: str, to: str, name: str) -> str:
    """A row of B from ``%column`` on, where it is, for the step ``k``."""
    read = f"""%b_read{name} = vector.transfer_read %B[%b, {k}, %column], %no_column
              : {operand_type(found.b)}, vector<{columns}x{found.b.element}>"""
    return f"{read}\n{_extended(to, f'%b_read{name}', found.b.element, found, f'{columns}')}"


def _rows_of_block(rows: int) -> str:
    """Rows behind the last are like that one."""
    lines: list[str] = []
    for number in range(rows):
        lines += [
            f"%number{number} = arith.constant {number} : index",
            f"%wanted{number} = arith.addi %row, %number{number} : index",
            f"%row{number} = arith.minsi %wanted{number}, %last_row : index",
        ]
    return "\n".join(lines)


def _read_rows(found: Contraction, rows: int, k: str, name: str) -> str:
    """The elements of a block of A, where it is, for the step ``k``: ``%a`` and ``name``."""
    lines: list[str] = []
    for number in range(rows):
        at = f"%row{number}, {k}" if found.is_lines(found.a) else f"{k}, %row{number}"
        lines.append(f"%e{name}_{number} = memref.load %A[%b, {at}] : {operand_type(found.a)}")
        lines.append(_extended(f"%a{name}_{number}", f"%e{name}_{number}", found.a.element, found, ""))
    elements = ", ".join(f"%a{name}_{number}" for number in range(rows))
    lines.append(f"%a{name} = vector.from_elements {elements} : vector<{rows}x{found.element}>")
    return "\n".join(lines)


def _end(found: Contraction, columns: int, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """A row of sums, ``%part_sums``, is added to what the result holds and written: all sums with the epilogue."""
    of, result, type_ = found.element, found.c.element, matrix_type(found.c.element)
    line, written = f"vector<{columns}x{of}>", f"vector<{columns}x{result}>"
    read = f"%held = vector.transfer_read %C[%b, %at, %column], %nothing : {type_}, {written}"
    text = f"""%so_far_there = scf.if %is_first -> ({line}) {{
          scf.yield %no_sums : {line}
        }} else {{
          {read}
          {_extended("%held_wide", "%held", result, found, f"{columns}")}
          scf.yield %held_wide : {line}
        }}
        %all_sums = {_add(of)} %part_sums, %so_far_there : {line}"""
    sums = "%all_sums"
    if result != of:
        text += f"\n%rounded = arith.truncf {sums} : {line} to {written}"
        sums = "%rounded"
    place = f"%C[%b, %at, %column] : {written}, {type_}"
    write = f"""%end_of_line = arith.addi %column, %columns : index
        %fits = arith.cmpi sle, %end_of_line, %N : index
        scf.if %fits {{
          vector.store {sums}, %C[%b, %at, %column] : {type_}, {written}
        }} else {{
          vector.transfer_write {sums}, {place}
        }}"""
    if follows is None:
        return f"{text}\n{write}"
    steps = [_read_extra(number, extra, columns) for number, extra in enumerate(extras)]
    steps += [step.replace("$block", f"{columns}x").replace("%sums", sums) for step in follows.steps]
    lines, done = "\n".join(steps), follows.done.replace("%sums", sums)
    return f"""{text}
        %to_write = scf.if %is_last -> ({written}) {{
          {lines}
          scf.yield {done} : {written}
        }} else {{
          scf.yield {sums} : {written}
        }}
        {write.replace(sums, "%to_write")}"""


def _read_extra(number: int, extra: Extra, columns: int) -> str:
    block = f"vector<{columns}x{extra.element}>"
    if not extra.columns:
        return f"""%element{number} = memref.load %extra{number}[%b, %at, %column] : {extra.kernel_type}
            %operand{number} = vector.broadcast %element{number} : {extra.element} to {block}"""
    return f"""%pad{number} = arith.constant {zero(extra.element)} : {extra.element}
        %operand{number} = vector.transfer_read %extra{number}[%b, %at, %column], %pad{number}
          : {extra.kernel_type}, {block}"""


def _pack_call(found: Contraction, operand: Operand, name: str, row: Row, library: KernelLibrary) -> str:
    """A call of the function that packs a panel of A or B, the same for all with these element types."""
    source, of, numbers = operand.element, found.element, row.numbers
    depth, lines = numbers["depth"], _lines(numbers["rows"], numbers["columns"])
    pack = library.symbol(
        "pack",
        {
            "FROM": source,
            "TO": of,
            "LINES": lines,
            "DEPTH": depth,
            "WIDE": numbers["wide"],
            "ZERO": zero(source),
            "TRANSPOSE": _transpose(found, source, lines, depth),
            "CONVERT": _extended("%elements", "%read", source, found, f"{numbers['wide']}"),
        },
    )
    width, extent, first = ("rows", "M", "m0") if name == "a" else ("columns", "N", "n0")
    number = "%panel"
    before = ""
    if name == "b":
        number = "%panel_of_b"
        before = "%panel_of_b = arith.subi %panel, %a_panels : index\n"
    types = f"{matrix_type(source)}, index, memref<?x{of}>, index, index, index, index, index, index, i1"
    return f"""{before}%{name}_behind = arith.muli {number}, %{name}_panel : index
        %{name}_begin = arith.muli %slot, %{name}_size : index
        %{name}_offset = arith.addi %{name}_begin, %{name}_behind : index
        %{name}_in_block = arith.muli {number}, %{width} : index
        %{name}_first = arith.addi %{first}, %{name}_in_block : index
        func.call @{pack}(%{name.upper()}, %b, %packed_{name}, %{name}_offset, %{width}, %{name}_first, %{extent},
          %k0, %steps, %{name}_lines) : ({types}) -> ()"""


def _lines(rows: int, columns: int) -> int:
    """How many lines are transposed at once: a power of two, and panels of A and of B have a multiple of it."""
    both = gcd(rows, columns)
    return min(_MOST_LINES, both & -both)


def _transpose(found: Contraction, source: str, lines: int, depth: int) -> str:
    """``lines`` rows, a power of two, of ``depth`` elements each, stored as columns.

    Rows i and i + lines / 2 are interleaved, then the same is done with what that gives.
    """
    of, type_ = found.element, matrix_type(source)
    line = f"vector<{depth}x{source}>"
    text: list[str] = []
    for number in range(lines):
        text += [
            f"%n{number} = arith.constant {number} : index",
            f"%w{number} = arith.addi %at, %n{number} : index",
            f"%at{number} = arith.minsi %w{number}, %last : index",
        ]
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
    text += [_extended(f"%v{number}", f"%reads#{number}", source, found, f"{depth}") for number in range(lines)]
    names, size = [f"%v{number}" for number in range(lines)], depth
    while len(names) > 1:
        half = len(names) // 2
        pairs = zip(names[:half], names[half:], strict=True)
        names = []
        for one, other in pairs:
            names.append(f"%i{size}_{len(names)}")
            text.append(
                f"{names[-1]} = vector.interleave {one}, {other} : vector<{size}x{of}> -> vector<{2 * size}x{of}>"
            )
        size *= 2
    for step in range(depth):
        text.append(
            f"%s{step} = vector.extract_strided_slice {names[0]} {{offsets = [{step * lines}], sizes = [{lines}], "
            f"strides = [1]}} : vector<{size}x{of}> to vector<{lines}x{of}>"
        )
        if step:
            text.append(f"%p{step} = arith.addi %p{step - 1}, %width : index")
        text.append(f"vector.store %s{step}, %packed[%p{step}] : memref<?x{of}>, vector<{lines}x{of}>")
    return "\n".join(text)


def _extended(to: str, value: str, element: str, found: Contraction, shape: str) -> str:
    """``value``, a vector of ``shape`` or a number, as the same of the type that sums are computed in."""
    before, behind = (f"vector<{shape}x", ">") if shape else ("", "")
    wide = f"{before}{found.element}{behind}"
    if element == found.element:
        return f"{to} = arith.bitcast {value} : {wide} to {wide}"
    return f"{to} = {found.extend} {value} : {before}{element}{behind} to {wide}"


def zero(element: str) -> str:
    """0, as MLIR writes it."""
    return "0.0" if _is_float(element) else "0"


def _add(element: str) -> str:
    return "arith.addf" if _is_float(element) else "arith.addi"


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
