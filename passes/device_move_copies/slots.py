"""What loops carry: the places of a value that goes into a loop, from iteration to iteration, and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from devscope.analysis.value_flow import first_carried
from devscope.analysis.value_kinds import TENSOR, kind_of
from devscope.dialects.names import op_name
from devscope.passes.device_move_copies.copy_index import is_single_block


@dataclass(frozen=True)
class Slot:
    """One carried value. Operands are named by their operation and number."""

    argument: SSAValue
    """What it is inside."""
    result: SSAValue | None
    """What it is behind the loop."""
    first: tuple[Operation, int] | None
    """The operand that it is in the first iteration, if it enters the loop from outside."""
    next: tuple[Operation, int]
    """The operand at the end of a block that it is next."""


def slots_of(loop: Operation) -> list[Slot]:
    """The tensors that an ``scf.for`` or ``scf.while`` carries; none for other loops.

    An ``scf.while`` has two kinds: what enters its first region, and what goes from there to the second and out.
    """
    if not all(map(is_single_block, loop.regions)):
        return []
    found: Iterator[Slot] = iter(())
    if op_name(loop) == "scf.for":
        found = _of_for(loop)
    elif op_name(loop) == "scf.while":
        found = _of_while(loop)
    return [slot for slot in found if kind_of(slot.argument.type) == TENSOR]


def _of_for(loop: Operation) -> Iterator[Slot]:
    body, first = loop.regions[0].block, first_carried(loop)
    end = body.last_op
    assert end is not None
    for number, (argument, result) in enumerate(zip(body.args[1:], loop.results, strict=True)):
        yield Slot(argument, result, (loop, first + number), (end, number))


def _of_while(loop: Operation) -> Iterator[Slot]:
    before, after = (region.block for region in loop.regions)
    condition, end = before.last_op, after.last_op
    assert condition is not None
    assert end is not None
    for number, argument in enumerate(before.args):
        yield Slot(argument, None, (loop, number), (end, number))
    for number, (argument, result) in enumerate(zip(after.args, loop.results, strict=True)):
        yield Slot(argument, result, None, (condition, 1 + number))
