"""What kernels begin with: what a buffer is filled with before they add to it."""

from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def filled_before(op: Any, buffer: Any) -> tuple[Any, str] | None:
    """The operation that fills ``buffer``, a new one, right before ``op`` adds to it, and the constant's text."""
    view = mlir_util.maker(buffer, "memref.collapse_shape")
    buffer = buffer if view is None else view.operands[0]
    if isinstance(buffer.owner, ir.Block) or buffer.owner.operation.name != "memref.alloc":
        return None
    earlier: Any = None
    for use in buffer.uses:
        user = _inside(use.owner.operation, op.block)
        if user is None or not user.is_before_in_block(op) or (view is not None and user == view):
            continue
        if facts(user.name).view_of is not None:
            return None
        if earlier is None or earlier.is_before_in_block(user):
            earlier = user
    if earlier is None or earlier.name != "linalg.fill" or isinstance(earlier.operands[0].owner, ir.Block):
        return None
    constant = earlier.operands[0].owner.operation
    if constant.name != "arith.constant" or earlier.operands[1] != buffer:
        return None
    return earlier, str(constant.attributes["value"]).rpartition(" : ")[0]


def _inside(op: Any, block: Any) -> Any | None:
    """The operation of ``block`` that is or has ``op``; None if there is none."""
    while op.block != block:
        op = op.parent
        if op.name == "func.func":
            return None
    return op


def zeros_before(op: Any, buffer: Any) -> Any | None:
    """The operation that makes ``buffer`` zero right before ``op`` adds to it."""
    found = filled_before(op, buffer)
    if found is None:
        return None
    fill, text = found
    return fill if text and is_zero(text) else None


def fills_with_zero(op: Any) -> bool:
    """Whether ``op`` is a ``linalg.fill`` with a constant that is zero."""
    constant = mlir_util.maker(op.operands[0], "arith.constant") if op.name == "linalg.fill" else None
    number = "" if constant is None else str(constant.attributes["value"]).rpartition(" : ")[0]
    return bool(number) and is_zero(number)


def is_zero(number: str) -> bool:
    """Whether the text of a constant of MLIR is zero of some kind."""
    try:
        return float(number) == 0
    except ValueError:  # a pattern of bits
        return False
