"""Copies in a planned module: which there are, where another one goes, and whom they serve."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

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


def fold_copy(copy: DeviceCopyOp) -> SSAValue | None:
    """What makes ``copy`` needless; None if nothing does.

    S -> S is no copy; S -> T -> S is the value itself; S -> T -> U is S -> U, in the first copy's place, if
    nothing else uses T: the second may stand in a loop. The first copy then goes to U.
    """
    if copy.src == copy.dst:
        return copy.operand
    first = copy.operand.owner
    if not isinstance(first, DeviceCopyOp):
        return None
    if first.src == copy.dst:
        return first.operand
    if not first.result.has_one_use():
        return None
    first.dst = copy.dst
    return first.result


def insert_copy(value: SSAValue, src: ScopeAttr, dst: ScopeAttr, like: Operation, before: Operation) -> SSAValue:
    """A new copy of ``value`` in front of an operation, located where ``like`` is."""
    copy = DeviceCopyOp(value, src, dst)
    copy.location = like.location
    Rewriter.insert_op(copy, InsertPoint.before(before))
    return copy.result


def move_before(op: Operation, anchor: Operation) -> None:
    """Put an operation that stands elsewhere in front of ``anchor``."""
    op.detach()
    Rewriter.insert_op(op, InsertPoint.before(anchor))
