"""xDSL operations made without the checks and conversions of its constructors.

An import makes 100,000 operations whose parts are known to be right; ``Operation.create`` and ``Block.add_op``
take longer over each than reading it from MLIR. This is the only module that writes private fields of xDSL's IR;
a test compares what it makes with what xDSL's own functions make.

Unlike the constructors it fills in no default properties: what MLIR does not hold is not there.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, Use
from xdsl.ir.core import SSAValues


def make_operation(
    cls: type[Operation],
    operands: list[SSAValue],
    result_types: list[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    location: Any,
) -> Operation:
    """A detached operation without regions and successors. It keeps the two dictionaries."""
    op = cls.__new__(cls)
    op._operands = SSAValues(operands)
    op._operand_uses = uses = tuple([Use(op, index) for index in range(len(operands))])
    for operand, use in zip(operands, uses, strict=True):
        operand.add_use(use)
    op.results = SSAValues([OpResult(type, op, index) for index, type in enumerate(result_types)])
    op.properties = properties
    op.attributes = attributes
    op.location = location
    return op


def append(block: Block, op: Operation) -> None:
    """Put ``op``, which is in no block, at the end of ``block``, which is not inside ``op``."""
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op
    op.parent = block
