"""Operations that read each element of an input only to write the same element of an output.

Their output may be in the memory of that input. Kernels are calls by the time that memory is planned: what is
known of the operation inside stands on the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

ATTRIBUTE = "devscope.elementwise"
"""On the call of a kernel: operands in pairs, an input and the output that may be in its memory."""


def mark_call(call: Any, op: Any) -> None:
    """Note on ``call``, whose operands are buffers that ``op`` uses, which of them may share memory."""
    positions = {value: number for number, value in enumerate(call.operands)}
    pairs = [
        positions[value]
        for pair in elementwise_pairs(op)
        if all(value in positions for value in pair)
        for value in pair
    ]
    if pairs:
        call.attributes[ATTRIBUTE] = ir.DenseI64ArrayAttr.get(pairs, call.context)


def elementwise_pairs(op: Any) -> list[tuple[Any, Any]]:
    """Inputs of ``op`` with outputs that may be in their memory."""
    if op.name == "func.call":
        if ATTRIBUTE not in op.attributes:
            return []
        numbers, operands = list(ir.DenseI64ArrayAttr(op.attributes[ATTRIBUTE])), list(op.operands)
        return [(operands[a], operands[b]) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    if op.name != "linalg.generic" or "reduction" in str(op.attributes["iterator_types"]) or _body_reads(op):
        return []
    inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    return [
        (source, target)
        for target, written in zip(operands[inputs:], maps[inputs:], strict=True)
        if mlir_util.is_memref(target.type) and written.is_permutation and operands.count(target) == 1
        for source in dict.fromkeys(operands[:inputs])
        if source.type == target.type and _read(source, operands, maps) == {written}
    ]


def _body_reads(op: Any) -> bool:
    """Whether the body loads elements of buffers, any of them, beside those that the operation gives it."""
    bodies = (inner for child in mlir_util.children(op) for inner in mlir_util.walk(child))
    return any(mlir_util.is_memref(value.type) for inner in bodies for value in inner.operands)


def _read(value: Any, operands: Sequence[Any], maps: Sequence[Any]) -> set[Any]:
    return {m for operand, m in zip(operands, maps, strict=True) if operand == value}
