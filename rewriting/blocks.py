"""Rewriting the operations of one block."""

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter


def reorder(block: Block, ops: Sequence[Operation]) -> None:
    """Put all operations of a block, but for its terminator if that is not among ``ops``, into this order."""
    end = block.last_op if block.last_op not in set(ops) else None
    for op in ops:
        op.detach()
        if end is not None:
            block.insert_op_before(op, end)
        else:
            block.add_op(op)


def erase_operations(ops: Iterable[Operation]) -> None:
    """Erase operations that only use each other's results."""
    for op in list(ops):
        Rewriter.erase_op(op, safe_erase=False)
