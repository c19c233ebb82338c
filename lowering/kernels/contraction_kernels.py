"""Which kernels compute a contraction, and where each reads its operands.

Rows and columns whose number is not known may be one or few, as of programs that are run with a batch of one: that
has kernels of its own, as the one for many would pack all of the other operand for it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from devscope.lowering.interop import bindings
from devscope.lowering.kernels.contraction_dots import fitted
from devscope.lowering.kernels.contraction_match import Contraction, Operand, Place, match
from devscope.lowering.kernels.contraction_operands import element_bytes
from devscope.lowering.kernels.contraction_panels import fits_tasks
from devscope.lowering.kernels.contraction_values import DOTS, NARROW, PACKED
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.windowed import strides_of

KIND = "contraction"

_PAGE = 4096
"""Bytes."""

_WAYS = 8
"""Lines that a set of the first cache has."""


class Kernel(NamedTuple):
    """``loop``: that of the contraction which must have at most ``most`` iterations; None: sizes are any."""

    found: Contraction
    row: Row
    loop: int | None = None
    most: int = 1


def kernel_of(op: Any, found: Contraction, row: Row, constants: PackedConstants) -> Kernel:
    """The kernel of ``row`` for ``found``, which says from then on where it reads its operands."""
    if row.template == PACKED:
        m, rows = found.extent("m"), row.numbers["rows"]
        row = replace(row, numbers={**row.numbers, "rows": rows if m is None else max(1, min(rows, m))})
        _place_operands(op, found, row, constants)
    elif row.template == DOTS:
        row = fitted(row, found)
        found.a = _vectors(op, found, found.a, "m", row, constants)
        found.b = _vectors(op, found, found.b, "n", row, constants)
    return Kernel(found, row)


def kernels_of_few_lines(
    op: Any, kernel: Kernel, schedules: Schedules, constants: PackedConstants
) -> list[Kernel]:
    """Those for one column, for one row, and for few, where it is not known how many ``kernel`` is for."""
    names = [name for name in ("n", "m") if _may_be_few(kernel, name)]
    ones = [_of_one(op, kernel, name, schedules, constants) for name in names]
    few = [_of_few(op, kernel, name, schedules, constants) for name in names]
    return [each for each in (*ones, *few) if each is not None]


def _of_one(op: Any, kernel: Kernel, name: str, schedules: Schedules, constants: PackedConstants) -> Kernel | None:
    found, row, *_ = kernel
    group = found.loops[name]
    own, other = (found.a, found.b) if name == "m" else (found.b, found.a)
    one = match(op, bindings.load("_mlir_libs._mlirDialectsLinalg"), frozenset(group))
    if one is None or one.outer or own.place is Place.PANELS:
        return None
    if other.place is Place.PANELS:
        if name == "n" or found.words is not None:
            return None
        # A constant is kept in one form.
        one.b = found.b
        return kernel_of(op, one, row, constants)._replace(loop=group[0])
    sizes, contiguous = one.sizes(), one.contiguous()
    its = schedules.find(KIND, one.element, sizes, contiguous)
    if its is None or its.template not in (DOTS, NARROW):
        return None
    schedules.note(op, its, one.element, sizes, contiguous)
    return kernel_of(op, one, its, constants)._replace(loop=group[0])


def _of_few(op: Any, kernel: Kernel, name: str, schedules: Schedules, constants: PackedConstants) -> Kernel | None:
    """Of as many lines as the row that holds for two of them is for, if it packs no more than it needs."""
    found = kernel.found
    few = match(op, bindings.load("_mlir_libs._mlirDialectsLinalg"))
    if few is None or Place.PANELS in (found.a.place, found.b.place):
        return None
    sizes, contiguous = few.sizes(), few.contiguous()
    its = schedules.find(KIND, few.element, sizes | {name: 2}, contiguous)
    if its is None or its.template not in (DOTS, NARROW) or name not in its.at_most:
        return None
    most = its.at_most[name]
    few.most = {name: most}
    schedules.note(op, its, few.element, sizes | few.most, contiguous)
    return kernel_of(op, few, its, constants)._replace(loop=found.loops[name][0], most=most)


def _may_be_few(kernel: Kernel, name: str) -> bool:
    found = kernel.found
    return (
        kernel.row.template == PACKED
        and len(found.loops[name]) == 1
        and found.extent(name) is None
        and not found.outer
    )


def _place_operands(op: Any, found: Contraction, row: Row, constants: PackedConstants) -> None:
    """Where the kernel reads A and B."""
    numbers = row.numbers
    found.b = _packed(op, found, found.b, "n", numbers["columns"], constants)
    if found.b.place is not Place.PANELS:  # one at most: A has the extents of the loops
        found.a = _packed(op, found, found.a, "m", numbers["rows"], constants)
    can_be = [x.place is Place.TO_PACK and x.element == found.element for x in (found.a, found.b)]
    loops = found.loops["k"][-1:] if numbers["rows"] <= _WAYS else [*found.loops["k"][-1:], *found.loops["m"][-1:]]
    if can_be[0] and numbers["a_in_place"] and not _are_pages_apart(found.a, loops):
        found.a.place = Place.IN_PLACE
    n, k = found.extent("n"), found.extent("k")
    is_little = can_be[1] and n is not None and k is not None and n * k <= numbers["b_in_place"]
    if is_little and not found.is_lines(found.b):
        found.b.place = Place.IN_PLACE
    if found.b.place is Place.TO_PACK and fits_tasks(found, row):
        found.b.place = Place.TO_PACK_IN_TASKS


def _are_pages_apart(operand: Operand, loops: Iterable[int]) -> bool:
    """Whether steps of one of ``loops`` are whole pages apart: those of a block fall into few sets of a cache."""
    strides = [strides_of(operand.value)[operand.axes[loop]] for loop in loops]
    return any(stride and stride * element_bytes(operand.element) % _PAGE == 0 for stride in strides)


def _vectors(
    op: Any, found: Contraction, operand: Operand, lines: str, row: Row, constants: PackedConstants
) -> Operand:
    """Where a kernel reads vectors along k of ``operand``."""
    if found.is_lines(operand):
        operand.place = Place.IN_PLACE
        return operand
    return _packed(op, found, operand, "k", row.numbers["lanes"], constants, steps=lines)


def _packed(
    op: Any,
    found: Contraction,
    operand: Operand,
    lines: str,
    width: int,
    constants: PackedConstants,
    steps: str = "k",
) -> Operand:
    """``operand`` in panels of its ``lines``, if it is a constant that no loops around the kernel go through."""
    if operand.place is Place.PANELS or any(loop in operand.axes for loop in found.outer):
        return operand
    groups = [[operand.axes[x] for x in found.loops[name] if x in operand.axes] for name in ("b", lines, steps)]
    packed = constants.pack(op, operand.value, groups, width, found.words, lines == "m")
    return operand if packed is None else Operand(packed, {}, Place.PANELS)
