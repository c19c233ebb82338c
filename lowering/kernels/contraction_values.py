"""What the templates of contractions are filled with.

A block of sums is computed at once and ends row by row: a row is added to what the result holds, goes through the
epilogue, is rounded and written. So the text of a kernel has all that once, whatever the block is.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from devscope.lowering.kernels.contraction_match import Contraction, Group, Operand
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row

ALL_STEPS = 1 << 40
"""A result that has fewer digits than its sums is not stored between two parts of a sum."""

_MOST_LINES = 8

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
    return panels_type(operand.element) if operand.packed else matrix_type(operand.element)


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
        return made | _of_packed(found, row, library)
    if row.template == "narrow":
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


def _of_packed(found: Contraction, row: Row, library: KernelLibrary) -> dict[str, object]:
    """Where panels of A and of B come from: packed by the kernel, or before, as constants."""
    rows, columns = row.numbers["rows"], row.numbers["columns"]
    pack_a, pack_b = not found.a.packed, not found.b.packed
    calls = {
        name: _pack_call(found, operand, name, row, library)
        for name, operand, here in (("a", found.a, pack_a), ("b", found.b, pack_b))
        if here
    }
    pack = "\n".join(calls.values())
    if len(calls) == 2:
        pack = f"""%is_a = arith.cmpi slt, %panel, %a_panels : index
            scf.if %is_a {{
              {calls["a"]}
            }} else {{
              {calls["b"]}
            }}"""
    panels = """%a_panels = arith.ceildivui %m, %rows : index
        %n_panels = arith.ceildivui %n, %columns : index
        %b_panels = arith.select %is_new, %n_panels, %0 : index"""
    if not pack_a:
        panels = panels.replace("arith.ceildivui %m, %rows", "arith.constant 0")
    if not pack_b:
        panels += "\n%no_panels = arith.constant 0 : index"
        panels = panels.replace("arith.select %is_new, %n_panels, %0", "arith.constant 0")
    made: dict[str, object] = {
        "STEPS": steps_of_k(found, row),
        "PANELS": panels,
        "PACK": pack,
        "PANEL_OF_B": _panel("b", "%j", "%column", found.b, columns),
        "READ_B": _read_panel("%b_row", "b", found.b, columns, found),
        "PANEL_OF_A": _panel("a", "%i", "%row", found.a, rows),
        "READ_A": _read_panel("%a", "a", found.a, rows, found),
    }
    return made


def _panel(name: str, local: str, line: str, operand: Operand, width: int) -> str:
    """Where the panel of ``width`` lines begins: ``%a_at`` or ``%b_at``, in elements."""
    if not operand.packed:
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
    of = f"vector<{width}x{operand.element if operand.packed else found.element}>"
    at = f"""%{name}_line = arith.muli %k, %{"rows" if name == "a" else "columns"} : index
        %{name}_index = arith.addi %{name}_at, %{name}_line : index"""
    if not operand.packed:
        return f"""{at}
            {to} = vector.load %packed_{name}[%{name}_index] : memref<?x{found.element}>, {of}"""
    return f"""{at}
        %{name}_packed = vector.load %{name.upper()}[%b, %{name}_index] : {operand_type(operand)}, {of}
        {_extended(to, f"%{name}_packed", operand.element, found, f"{width}")}"""


def _of_narrow(found: Contraction, rows: int, columns: int, steps: int) -> dict[str, object]:
    """Products of so many steps of k are added to a block of sums in one go; A is read before."""

    def add(step: int) -> str:
        block = f"vector<{rows}x{found.element}>, vector<{columns}x{found.element}>"
        return f"""%b_read{step} = vector.transfer_read %B[%b, %at_k{step}, %column], %no_column
              : {operand_type(found.b)}, vector<{columns}x{found.b.element}>
            {_extended(f"%b{step}", f"%b_read{step}", found.b.element, found, f"{columns}")}
            %sums{step + 1} = vector.outerproduct %a{step}, %b{step}, %sums{step} : {block}"""

    return {
        "PANEL_OF_A": _rows_of_block(rows),
        "READ_ALL_A": "\n".join(_read_rows(found, rows, step) for step in range(steps)),
        "ADD_ALL": "\n".join(map(add, range(steps))),
        "READ_A": _read_rows(found, rows, 0),
        "ADD": add(0),
    }


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


def _read_rows(found: Contraction, rows: int, step: int) -> str:
    """The elements of a block of A, where it is, for a step of k behind ``%k0``."""
    lines = [f"%step{step} = arith.constant {step} : index", f"%at_k{step} = arith.addi %k0, %step{step} : index"]
    for number in range(rows):
        at = f"%row{number}, %at_k{step}" if found.is_lines(found.a) else f"%at_k{step}, %row{number}"
        name = f"{step}_{number}"
        lines.append(f"%e{name} = memref.load %A[%b, {at}] : {operand_type(found.a)}")
        lines.append(_extended(f"%a{name}", f"%e{name}", found.a.element, found, ""))
    elements = ", ".join(f"%a{step}_{number}" for number in range(rows))
    lines.append(f"%a{step} = vector.from_elements {elements} : vector<{rows}x{found.element}>")
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
        %all_sums = arith.add{"f" if _is_float(of) else "i"} %part_sums, %so_far_there : {line}"""
    sums = "%all_sums"
    if result != of:
        text += f"\n%rounded = arith.truncf {sums} : {line} to {written}"
        sums = "%rounded"
    write = f"vector.transfer_write {sums}, %C[%b, %at, %column] : {written}, {type_}"
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
        {write.replace(sums, "%to_write", 1)}"""


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
    of = found.element
    text: list[str] = []
    for number in range(lines):
        text += [
            f"%n{number} = arith.constant {number} : index",
            f"%w{number} = arith.addi %at, %n{number} : index",
            f"%at{number} = arith.minsi %w{number}, %last : index",
            f"%read{number} = vector.transfer_read %matrix[%b, %at{number}, %k], %nothing : "
            f"{matrix_type(source)}, vector<{depth}x{source}>",
            _extended(f"%v{number}", f"%read{number}", source, found, f"{depth}"),
        ]
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


def _is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
