"""Guards of places that may lie outside: conditions whose meaning Intel's driver for CPUs does not see.

The driver (2026.2) notes what holds wherever a branch is taken: behind ``0 <= 2 * x - 1``, sums with ``2 * x - 1``
do not wrap around. It then computes such sums for whole vectors of work-items at once, those that do not take the
branch included, and keeps the notes. Where they contradict the first of these work-items, for which it knows all
numbers, it steps from one vector to the next by an arbitrary distance: data was read at other places, in silence.

A condition that also depends on something that the driver cannot know says nothing about places.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

OFFSET = "_Z17get_global_offsetj"
"""The built-in whose value is always 0 where devscope launches kernels."""

_LANES = frozenset(("gpu.thread_id", "gpu.global_id", "gpu.lane_id"))

_LEAVES = frozenset(
    ("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.subgroup_id", "memref.dim", "memref.load", "func.call")
)
"""Operations whose results are not negative, or numbers that the driver does not know."""

_NAMES = "addi muli divui remui minui maxui minsi maxsi shrui extui index_cast index_castui select"
_NATURAL = frozenset(f"arith.{name}" for name in _NAMES.split())
"""Operations whose results are not negative where no operand is."""


def hide_guards(kernel: Any) -> None:
    """Change each branch of ``kernel``, a ``gpu.func``, that tells negative places of work-items apart."""
    guards = [op for op in mlir_util.named(kernel, "scf.if", "scf.condition") if _is_guard(op.operands[0])]
    if not guards:
        return
    i1, i64 = (ir.IntegerType.get_signless(width, kernel.context) for width in (1, 64))
    offset, build = unknown_zero(kernel)
    is_moved = build.insert("%moved = arith.cmpi ne, %0, %1 : i64", [offset, build.constant(0, i64)])[0].results[0]
    for guard in guards:
        guard.operands[0] = Builder(guard).value("arith.xori", [guard.operands[0], is_moved], i1)


def unknown_zero(kernel: Any) -> tuple[Any, Builder]:
    """An i64 at the beginning of ``kernel`` that is 0, which no driver knows; what adds operations behind it."""
    i32, i64 = (ir.IntegerType.get_signless(width, kernel.context) for width in (32, 64))
    build = Builder(mlir_util.entry_block(kernel).operations[0].operation)
    offset = build.call(OFFSET, [build.constant(0, i32)], [i64]).results[0]
    beside = mlir_util.children(kernel.parent)
    if OFFSET not in [mlir_util.symbol_name(op) for op in beside if "sym_name" in op.attributes]:
        mlir_util.declare(kernel.parent, OFFSET, ir.FunctionType.get([i32], [i64], context=kernel.context))
    return offset, build


def _is_guard(condition: Any) -> bool:
    makers = _makers(condition, stop="arith.cmpi")
    return any(_may_be_negative(place) for op in makers if op.name == "arith.cmpi" for place in op.operands)


def _may_be_negative(place: Any) -> bool:
    """Whether ``place`` depends on the work-item, and on anything that makes numbers negative."""
    makers = _makers(place)
    return any(op.name in _LANES for op in makers) and not all(_is_natural(op) for op in makers)


def _is_natural(op: Any) -> bool:
    if op.name == "arith.constant":
        value = op.attributes["value"]
        return not isinstance(value, ir.IntegerAttr) or str(value.type) == "i1" or value.value >= 0
    return op.name in _NATURAL or op.name in _LANES or op.name in _LEAVES or op.name.startswith("scf.")


def _makers(value: Any, stop: str = "") -> list[Any]:
    """The operations that make ``value``, back to what is in memory, and to those named ``stop``."""
    found: list[Any] = []
    left, known = [value], {value}
    while left:
        value = left.pop()
        if not isinstance(value.owner, ir.Block):
            found.append(value.owner.operation)
        behind = _operands(value, stop)
        left += [other for other in behind if other not in known]
        known.update(behind)
    return found


def _operands(value: Any, stop: str) -> list[Any]:
    """The values that ``value`` is made from, through loops and branches too."""
    if isinstance(value.owner, ir.Block):
        op, number = value.owner.owner.operation, value.arg_number
        if op.name == "scf.for" and number == 0:
            return [op.operands[0]]  # no number of a loop is smaller than the first one
        first = {"scf.for": 2, "scf.while": 0}.get(op.name)
        return [] if first is None else [op.operands[first + number], *_ends(op, number - (op.name == "scf.for"))]
    op = value.owner.operation
    if op.name in (stop, *_LEAVES):
        return []
    if not op.name.startswith("scf."):
        return list(op.operands)
    begin = [op.operands[3 + value.result_number]] if op.name == "scf.for" else []
    return [*begin, *_ends(op, value.result_number)]


def _ends(op: Any, number: int) -> list[Any]:
    """What is passed on as number ``number`` at the ends of the blocks of ``op``."""
    ends = [block.operations[-1].operation for block in mlir_util.blocks_of(op)]
    passed = [list(end.operands)[end.name == "scf.condition" :] for end in ends]
    return [values[number] for values in passed if number < len(values)]
