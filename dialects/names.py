"""The real name of an operation, registered with xDSL or not."""

from __future__ import annotations

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation


def op_name(op: Operation) -> str:
    """The name of ``op`` as MLIR writes it, such as ``"linalg.batch_matmul"``.

    xDSL gives every operation that it does not know the name ``builtin.unregistered`` and keeps the
    real one in an attribute.
    """
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name
