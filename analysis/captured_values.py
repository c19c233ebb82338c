"""Values that operations with regions use from outside, and users of values as operations of one block."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue


def free_values(op: Operation) -> list[SSAValue]:
    """Values that ``op`` and the operations nested in it use but do not define, in first-use order."""
    found: dict[SSAValue, None] = {}
    if not op.regions:
        return list(dict.fromkeys(op.operands))
    nested = list(op.walk())
    inside = set(nested)
    for inner in nested:
        for operand in inner.operands:
            owner = operand.owner
            holder = owner.parent_op() if isinstance(owner, Block) else owner
            if holder not in inside:
                found.setdefault(operand)
    return list(found)


def users_in(block: Block, op: Operation) -> list[Operation | None]:
    """Operations of ``block`` that use a result of ``op``, nested uses included; None for uses elsewhere."""
    return [block.find_ancestor_op_in_block(use.operation) for result in op.results for use in result.uses]
