"""How many elements lie between what an access reads or writes in one iteration of a loop and in the next."""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

VIEWS = frozenset({"memref.subview", "memref.cast", "memref.expand_shape", "memref.collapse_shape"})


def side_by_side(accesses: Sequence[Any], index: Any) -> int:
    """How many more of ``accesses`` go on by one element with ``index`` than by another known distance."""
    distances = [_distance(op, index) for op in accesses]
    return sum(1 if distance == 1 else -1 for distance in distances if distance)


def _distance(op: Any, index: Any) -> int | None:
    """By how many elements an access goes on with ``index``; None if that is not known."""
    memref, *at = list(op.operands)[op.name == "memref.store" :]
    total = _along(memref, at, index)
    while total is not None and not isinstance(memref.owner, ir.Block):
        view = memref.owner.operation
        if view.name not in VIEWS:
            break
        memref = view.operands[0]
        if view.name == "memref.subview":
            _, offsets, *_ = mlir_util.operand_groups(view)
            dynamic, left = ir.ShapedType.get_dynamic_size(), iter(offsets)
            static = ir.DenseI64ArrayAttr(view.attributes["static_offsets"])
            begins = [next(left) if offset == dynamic else None for offset in static]
            more = _along(memref, begins, index)
            total = None if more is None else total + more
    return total


def _along(memref: Any, at: Sequence[Any], index: Any) -> int | None:
    strides, _ = ir.MemRefType(memref.type).get_strides_and_offset()
    total = 0
    for stride, place in zip(strides, at, strict=True):
        factor = 0 if place is None else _factor(place, index)
        if factor is None or (factor and stride == ir.ShapedType.get_dynamic_stride_or_offset()):
            return None
        total += factor * stride
    return total


def _factor(value: Any, index: Any) -> int | None:
    """By how much ``value`` grows with ``index``; None if that is not known."""
    if value == index:
        return 1
    if isinstance(value.owner, ir.Block):
        return 0
    op = value.owner.operation
    if op.name not in ("arith.addi", "arith.subi"):
        return None if _depends(op, index) else 0
    left, right = (_factor(operand, index) for operand in op.operands)
    if left is None or right is None:
        return None
    return left + right if op.name == "arith.addi" else left - right


def _depends(op: Any, index: Any) -> bool:
    seen, left = {op}, [op]
    while left:
        for value in (operand for each in mlir_util.walk(left.pop()) for operand in each.operands):
            if value == index:
                return True
            if not isinstance(value.owner, ir.Block) and value.owner.operation not in seen:
                seen.add(value.owner.operation)
                left.append(value.owner.operation)
    return False
