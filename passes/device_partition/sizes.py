"""Sizes of what operations make are asked of what they take, where both are the same: so that asking for the size
of a value inside of a match is no use of it outside.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.loops import constant_index
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of


def ask_operands(function: FuncOp) -> None:
    """Do so for every ``tensor.dim`` of a function whose result is used."""
    for op in [op for op in function.walk() if op_name(op) == "tensor.dim" and op.results[0].uses]:
        source, axis = _of_the_same_shape(op.operands[0]), constant_index(op.operands[1])
        size = None if axis is None else _given(source, axis)
        if size is not None:
            Rewriter.replace_op(op, [], [size])
        elif source is not op.operands[0]:
            op.operands[0] = source


def _of_the_same_shape(value: SSAValue) -> SSAValue:
    """The first in a chain of destinations, and of operands of elementwise operations."""
    while isinstance(owner := value.owner, Operation) and len(owner.results) == 1:
        is_destination = op_name(owner).startswith("linalg.") and owner.operands[-1].type == value.type
        if is_destination:
            value = owner.operands[-1]
        elif facts_of(owner).elementwise and len(owner.operands) and _shape(owner.operands[0]) == _shape(value):
            value = owner.operands[0]
        else:
            break
    return value


def _given(value: SSAValue, axis: int) -> SSAValue | None:
    """The size that a ``tensor.empty`` was given."""
    shape = _shape(value)
    if not isinstance(value.owner, Operation) or op_name(value.owner) != "tensor.empty" or shape is None:
        return None
    if not 0 <= axis < len(shape) or shape[axis] != DYNAMIC_INDEX:
        return None
    return value.owner.operands[shape[:axis].count(DYNAMIC_INDEX)]


def _shape(value: SSAValue) -> tuple[int, ...] | None:
    return value.type.get_shape() if isinstance(value.type, TensorType) else None
