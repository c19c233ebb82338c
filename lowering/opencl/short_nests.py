"""Nests of short loops as one loop.

Intel's driver for CPUs (2026.2) unrolls a nest whose loops are all short as a whole, however many iterations it
has. Where hundreds of steps in a row use the value before them more than once, as a minimum that keeps NaN does,
it takes minutes then, or does not end. One loop it unrolls only as far as that pays.

Sums and products, whose steps use that value once, stay nests: they take it no time, and of one loop that takes
products off (``s - x * y``, or ``s + -x * y``), with places that are quotients, the driver makes another number.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_SHORT = 32
"""Iterations of a loop that is unrolled within another one."""

_MANY = 64
"""Iterations of a nest that takes the driver less than a second, however its steps depend on each other."""


def join_short_nests(kernel: Any) -> None:
    """Make one loop of each nest of short loops in ``kernel`` that has many iterations and carries no values."""
    constants = mlir_util.constants(kernel)
    nests: list[list[tuple[Any, int]]] = []
    known: set[Any] = set()
    for op in mlir_util.walk(kernel):
        if op.name == "scf.for" and op not in known:
            nests.append(_nest(op, constants))
            known.update(loop for loop, _ in nests[-1])
    for nest in nests:
        if len(nest) > 1 and prod(count for _, count in nest) > _MANY and not _is_sum(nest[-1][0]):
            _join(nest)


_ONCE = frozenset(("arith.addf", "arith.subf", "arith.mulf", "math.fma"))


def _is_sum(loop: Any) -> bool:
    """Whether a step of ``loop`` adds to, or multiplies, a number in memory, and there is no other one."""
    steps = [op.operation for op in loop.regions[0].blocks[0].operations]
    written = {step.operands[1] for step in steps if step.name == "memref.store"}
    before = [step.results[0] for step in steps if step.name == "memref.load" and step.operands[0] in written]
    users = [use.owner.name for value in before for use in value.uses]
    return len(users) == len(before) > 0 and _ONCE.issuperset(users)


def _nest(loop: Any, constants: Mapping[Any, Any]) -> list[tuple[Any, int]]:
    """Short loops that hold nothing but each other, from ``loop`` on, with how often they run."""
    nest: list[tuple[Any, int]] = []
    while (count := _count(loop, constants)) is not None:
        nest.append((loop, count))
        inner = loop.regions[0].blocks[0].operations[0].operation
        if inner.name != "scf.for" or len(list(loop.regions[0].blocks[0].operations)) != 2:
            break
        loop = inner
    return nest


def _count(loop: Any, constants: Mapping[Any, Any]) -> int | None:
    """How often a short loop from 0 on in steps of 1 runs; None for another one."""
    bounds = list(loop.operands)
    if len(bounds) != 3 or not all(bound in constants for bound in bounds):  # else it carries values
        return None
    begin, end, step = (ir.IntegerAttr(constants[bound].attributes["value"]).value for bound in bounds)
    return end if (begin, step) == (0, 1) and 0 < end <= _SHORT else None


def _join(nest: list[tuple[Any, int]]) -> None:
    (outer, count), *inner = nest
    block = outer.regions[0].blocks[0]
    (index,), first = block.arguments, block.operations[0].operation
    build, left, uses = Builder(first), index, list(index.uses)
    for loop, extent in reversed(inner):
        size = build.constant(extent, index.type)
        place = build.value("arith.remui", [left, size], index.type)
        left = build.value("arith.divui", [left, size], index.type)
        loop.regions[0].blocks[0].arguments[0].replace_all_uses_with(place)
    for use in uses:
        use.owner.operands[use.operand_number] = left
    for op in list(inner[-1][0].regions[0].blocks[0].operations)[:-1]:
        op.operation.move_before(first)
    first.erase()
    outer.operands[1] = Builder(outer).constant(count * prod(extent for _, extent in inner), index.type)
