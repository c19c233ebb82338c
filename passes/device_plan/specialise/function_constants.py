"""``func.constant`` for each of its uses, so that each use of a function may be planned for other scopes.

While planning is under way there is one constant per use; afterwards those that name one function are one again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IntAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

_GROUP = "device.constant_group"
"""Marks constants that were one, also in clones of their functions. Never leaves planning."""


@contextmanager
def one_constant_per_use(functions: Sequence[FuncOp]) -> Generator[list[FuncOp]]:
    """Split the constants of ``functions``; clones made meanwhile are to be added to the list that is yielded."""
    # A single function can only name itself, and is planned once.
    split = [func for func in functions if _split(func)] if len(functions) > 1 else []
    try:
        yield split
    finally:
        for func in dict.fromkeys(split):
            _merge(func)


def _constants(func: FuncOp) -> list[Operation]:
    return [op for op in func.walk() if op.name == "func.constant"]


def _split(func: FuncOp) -> bool:
    """Whether a constant had more than one use."""
    constants = [op for op in _constants(func) if not op.results[0].has_one_use()]
    if not constants:
        return False
    position = {op: number for number, op in enumerate(func.walk())}
    for group, op in enumerate(constants):
        uses = sorted(op.results[0].uses, key=lambda use: (position[use.operation], use.index))
        op.attributes[_GROUP] = IntAttr(group)
        block, last = op.parent, op
        assert block is not None
        for use in uses[1:]:
            clone = op.clone()
            block.insert_op_after(clone, last)
            use.operation.operands[use.index] = clone.results[0]
            last = clone
    return True


def _merge(func: FuncOp) -> None:
    first: dict[tuple[object, ...], Operation] = {}
    for op in _constants(func):
        group = op.attributes.pop(_GROUP, None)
        if group is None:
            continue
        kept = first.setdefault((group, op.get_attr_or_prop("value")), op)
        if kept is not op:
            op.results[0].replace_all_uses_with(kept.results[0])
            Rewriter.erase_op(op)
