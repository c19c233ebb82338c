"""What kernels of contractions take, and how its elements are read where they are."""

from itertools import pairwise

from devscope.lowering.kernels.contraction_match import Contraction, Group, Operand, Place
from devscope.lowering.kernels.epilogue import Epilogue

CACHE_LINE = 64
"""Bytes that are fetched together."""


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
    result = Operand(follows.result, found.c.axes, ones=found.c.ones)
    if result.innermost() != found.c.innermost() or not all(_is_one(result, g) for g in found.loops.values()):
        return None
    made: list[Extra] = []
    for value, axes in follows.operands:
        extra = Extra(value, {loops[axis]: number for number, axis in enumerate(axes)}, ones=found.c.ones)
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


def clamped(name: str, count: int, first: str, last: str) -> str:
    """Indices ``%name0``, ``%name1`` and so on from ``first`` on; those behind ``last`` are that one."""
    lines: list[str] = []
    for number in range(count):
        lines += [
            f"%{name}_step{number} = arith.constant {number} : index",
            f"%{name}_wanted{number} = arith.addi {first}, %{name}_step{number} : index",
            f"%{name}{number} = arith.minsi %{name}_wanted{number}, {last} : index",
        ]
    return "\n".join(lines)


def read_rows(found: Contraction, rows: int, k: str, name: str) -> str:
    """The elements of a block of A, where it is, for the step ``k``: ``%a`` and ``name``."""
    lines: list[str] = []
    for number in range(rows):
        at = f"%row{number}, {k}" if found.is_lines(found.a) else f"{k}, %row{number}"
        lines.append(f"%e{name}_{number} = memref.load %A[%b, {at}] : {operand_type(found.a)}")
        lines.append(extended(f"%a{name}_{number}", f"%e{name}_{number}", found.a.element, found, ""))
    elements = ", ".join(f"%a{name}_{number}" for number in range(rows))
    lines.append(f"%a{name} = vector.from_elements {elements} : vector<{rows}x{found.element}>")
    return "\n".join(lines)


def read_columns(found: Contraction, columns: int, k: str, to: str, name: str, whole: bool) -> str:
    """A row of B from ``%column`` on, where it is, for the step ``k``; ``whole``: all of ``columns`` are there."""
    inside = "{in_bounds = [true]}" if whole else ""
    read = f"""%b_read{name} = vector.transfer_read %B[%b, {k}, %column], %no_column {inside}
              : {operand_type(found.b)}, vector<{columns}x{found.b.element}>"""
    return f"{read}\n{extended(to, f'%b_read{name}', found.b.element, found, f'{columns}')}"


def extended(to: str, value: str, element: str, found: Contraction, shape: str) -> str:
    """``value``, a vector of ``shape`` or a number, as the same of the type that sums are computed in."""
    before, behind = (f"vector<{shape}x", ">") if shape else ("", "")
    wide = f"{before}{found.element}{behind}"
    if element == found.element:
        return f"{to} = arith.bitcast {value} : {wide} to {wide}"
    return f"{to} = {found.extend} {value} : {before}{element}{behind} to {wide}"


def zero(element: str) -> str:
    """0, as MLIR writes it."""
    return "0.0" if is_float(element) else "0"


def addition(element: str) -> str:
    return "arith.addf" if is_float(element) else "arith.addi"


def is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
