"""The steps of a kernel over rows: what each of a group of operations does with a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering.gpu.bodies import captured, own_combiners
from devscope.lowering.kernels.best_elements import Best, best_of
from devscope.lowering.kernels.nest import Nest, Operand, product_of
from devscope.lowering.kernels.rows import RowGroup

ALONE = "alone"
EACH = "each"
ALL = "all"


@dataclass
class Step:
    """``kind``: see `_kind`. ``loops``: those inside a row, outermost first, and ``around`` it."""

    number: int
    nest: Nest
    kind: str
    loops: Sequence[int]
    around: Sequence[int]
    captured: Sequence[Any]
    best: Best | None

    def name(self, loop: int) -> int:
        """Of a loop in the text: those of rows are the same in all steps."""
        return self.around.index(loop) if loop in self.around else 100 * (self.number + 1) + loop

    def length(self) -> int | None:
        return product_of(self.nest.static_extent(loop) for loop in self.loops)

    def is_aligned(self, operand: Operand) -> bool:
        """Whether a work-item has the elements of ``operand`` that it has iterations of."""
        return self.kind in (EACH, ALL) and list(operand.dims) == [*self.around, *self.loops]


def can_be_shared(nest: Nest, rows: int) -> bool:
    """Whether work-items can share a row of the results of ``nest``; ``rows``: how many axes say which.

    Those side by side are to read elements side by side.
    """
    if len({operand.dims for operand in nest.results}) > 1:
        return False
    around = nest.results[0].dims[:rows]
    kind = _kind(nest, rows)
    if kind is None or (kind == ALL and own_combiners(nest.op) is None and best_of(nest.op) is None):
        return False
    return not any(
        operand.contiguous() in around
        for operand in nest.operands
        if operand.is_buffer and len(operand.dims) == len(nest.parallel) > rows
    )


def _kind(nest: Nest, rows: int) -> str | None:
    """What one row of results is: one number, of one element or of all of a row; or a number of each element."""
    inner = len(nest.results[0].dims) - rows
    if len(nest.parallel) > len(nest.results[0].dims):
        return None if inner else ALL
    return EACH if inner else ALONE


def steps_of(group: RowGroup) -> list[Step]:
    """Those of a group whose operations all `can_be_shared`."""
    return [_step(number, nest, group.rows) for number, nest in enumerate(group.nests)]


def _step(number: int, nest: Nest, rows: int) -> Step:
    around = nest.results[0].dims[:rows]
    kind = _kind(nest, rows)
    assert kind is not None
    loops: Sequence[int] = nest.results[0].dims[rows:]
    if kind == ALL:
        loops = [loop for loop in range(len(nest.parallel)) if loop not in around]
    best = best_of(nest.op) if kind == ALL and own_combiners(nest.op) is None else None
    return Step(number, nest, kind, loops, around, captured(nest.op), best)
