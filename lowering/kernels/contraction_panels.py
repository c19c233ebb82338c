"""Panels of A and B: what packs them, and how they are read."""

from collections.abc import Mapping

from devscope.lowering.kernels.contraction_match import Contraction, Operand, Place
from devscope.lowering.kernels.contraction_operands import clamped, extended, matrix_type, operand_type, zero
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row

_MOST_LINES = 8


def pack_tasks(calls: Mapping[str, str]) -> str:
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


def pack_call(found: Contraction, operand: Operand, name: str, row: Row, library: KernelLibrary) -> str:
    """A call of the function that packs a panel of A or B, the same for all with these element types."""
    source, of, numbers = operand.element, found.element, row.numbers
    width = numbers["rows" if name == "a" else "columns"]
    if found.is_lines(operand):
        pack = pack_lines(found, operand, width, numbers["depth"], library)
    else:
        pack = _pack_wide(found, operand, numbers["wide"], library)
    width, extent, first = ("rows", "M", "m0") if name == "a" else ("columns", "N", "n0")
    number = "%panel"
    before = ""
    if name == "b":
        number = "%panel_of_b"
        before = "%panel_of_b = arith.subi %panel, %a_panels : index\n"
    types = f"{matrix_type(source)}, index, memref<?x{of}>{', index' * 6}"
    return f"""{before}%{name}_behind = arith.muli {number}, %{name}_panel : index
        %{name}_begin = arith.muli %slot, %{name}_size : index
        %{name}_offset = arith.addi %{name}_begin, %{name}_behind : index
        %{name}_in_block = arith.muli {number}, %{width} : index
        %{name}_first = arith.addi %{first}, %{name}_in_block : index
        func.call @{pack}(%{name.upper()}, %b, %packed_{name}, %{name}_offset, %{width}, %{name}_first, %{extent},
          %k0, %steps) : ({types}) -> ()"""


def _pack_wide(found: Contraction, operand: Operand, wide: int, library: KernelLibrary) -> str:
    source = operand.element
    values = {
        "FROM": source,
        "TO": found.element,
        "WIDE": wide,
        "ZERO": zero(source),
        "CONVERT": extended("%elements", "%read", source, found, f"{wide}"),
    }
    return library.symbol("pack", values)


def pack_lines(found: Contraction, operand: Operand, width: int, depth: int, library: KernelLibrary) -> str:
    """The function that packs a panel of ``width`` lines of ``operand``, or of a multiple of it."""
    source = operand.element
    lines = min(_MOST_LINES, width & -width)  # that are transposed at once: a power of two
    values = {
        "FROM": source,
        "TO": found.element,
        "LINES": lines,
        "DEPTH": depth,
        "ZERO": zero(source),
        "TRANSPOSE": _transpose(found, source, lines, depth),
    }
    return library.symbol("pack_lines", values)


def _transpose(found: Contraction, source: str, lines: int, depth: int) -> str:
    """``lines`` rows, a power of two, of ``depth`` elements each, stored as columns.

    Rows i and i + lines / 2 are interleaved, then the same is done with what that gives.
    """
    of, type_ = found.element, matrix_type(source)
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
    text += [extended(f"%v{number}", f"%reads#{number}", source, found, f"{depth}") for number in range(lines)]
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


def panel(name: str, local: str, line: str, operand: Operand, width: int) -> str:
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


def read_panel(to: str, name: str, operand: Operand, width: int, found: Contraction) -> str:
    """The elements of one step of k."""
    of = f"vector<{width}x{operand.element if operand.place is Place.PANELS else found.element}>"
    at = f"""%{name}_line = arith.muli %k, %{"rows" if name == "a" else "columns"} : index
        %{name}_index = arith.addi %{name}_at, %{name}_line : index"""
    if operand.place is Place.TO_PACK:
        return f"""{at}
            {to} = vector.load %packed_{name}[%{name}_index] : memref<?x{found.element}>, {of}"""
    return f"""{at}
        %{name}_packed = vector.load %{name.upper()}[%b, %{name}_index] : {operand_type(operand)}, {of}
        {extended(to, f"%{name}_packed", operand.element, found, f"{width}")}"""
