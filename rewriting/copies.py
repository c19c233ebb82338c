"""Copies in a planned module: which there are, where another one goes, and whom they serve."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from devscope.analysis.insertion import InsertionPoints
from devscope.dialects.device import DeviceCopyOp, ScopeAttr


def place_of_copy(value: SSAValue, users: Sequence[Operation]) -> InsertPoint:
    """Where a copy of ``value`` serves ``users``: right after the definition, or on the path that needs it."""
    region = value.owner.parent_region()
    if region is not None and all(region.is_ancestor(user) for user in users):
        point = InsertionPoints().point(value, users)
        if point.anchor is not None:
            return InsertPoint.before(point.anchor)
    owner = value.owner
    return InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)


def copies_of(value: SSAValue, scope: ScopeAttr) -> list[DeviceCopyOp]:
    """The copies of a value that go to ``scope``."""
    users = (use.operation for use in value.uses)
    return [op for op in users if isinstance(op, DeviceCopyOp) and op.dst == scope]


def dominates(op: Operation, user: Operation) -> bool:
    """Whether ``op`` has run whenever ``user`` does, as far as one block tells: blocks are not compared."""
    outer = op.parent.find_ancestor_op_in_block(user) if op.parent is not None else None
    return outer is not None and op.is_before_in_block(outer)


def there_and_back(copy: DeviceCopyOp) -> SSAValue | None:
    """What ``copy`` brings back to where it came from; None if it does not."""
    first = copy.operand.owner
    return first.operand if isinstance(first, DeviceCopyOp) and first.src == copy.dst else None


def first_of_chain(copy: DeviceCopyOp) -> DeviceCopyOp | None:
    """The copy that made what ``copy`` copies, if nothing else uses it."""
    first = copy.operand.owner
    return first if isinstance(first, DeviceCopyOp) and first.result.has_one_use() else None
