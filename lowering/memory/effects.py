"""What operations on buffers do to the memory of an operand: nothing, only read it, or perhaps write it.

Elementwise operations read each element of an input only to write the same element of an output, which may then be
in the memory of that input. Kernels are calls by the time that memory is planned: what is known of them stands on
the call.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from devscope.dialects.op_facts import LOOPS, Control, facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_WRITES = "devscope.writes"
"""On the call of a kernel: the positions of the buffers that it may write."""

_ELEMENTWISE = "devscope.elementwise"
"""On the call of a kernel: operands in pairs, an input and the output that may be in its memory."""

VIEW = "memref.memory_space_cast"
"""A buffer as another memory's: nothing is copied."""

END_VIEW = "device.end_view"
"""What uses the second operand, a device's view of the first one, comes before what uses the first one from here
on."""

WRITTEN = "devscope.written"
"""On the view of a device's buffer that has contents: the host writes there, too."""

FILLED = "devscope.filled"
"""On the view of a device's buffer without contents: the host makes them there."""

PUBLISH = "device.publish"
"""The contents that were made through the operand, a view, are complete."""

_CARRIERS = LOOPS | {Control.YIELD, Control.CONDITION}
"""They use no elements. Where control flow carries a buffer on, its other values are followed."""


class Effect(Enum):
    NOTHING = 0
    READ = 1
    WRITE = 2
    """It may read, too."""


def buffer_of(value: Any) -> Any:
    """The buffer that ``value`` is, or is a view of."""
    while (
        not isinstance(value.owner, ir.Block) and (view := facts(value.owner.operation.name).view_of) is not None
    ):
        value = value.owner.operation.operands[view]
    return value


def is_new(buffer: Any) -> bool:
    """Whether ``buffer`` is allocated here: no other one that is not a view of it is in its memory."""
    return not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name == "memref.alloc"


def effect_of(name: str, op: Any, operands: Sequence[Any], buffer: Any) -> Effect:
    """What ``op``, an operation called ``name``, does by itself to one of its ``operands``."""
    known = facts(name)
    if known.view_of is not None or known.frees or known.query or known.control in _CARRIERS:
        return Effect.NOTHING
    if name in (END_VIEW, PUBLISH):
        return Effect.NOTHING
    return Effect.WRITE if any(buffer == value for value in _written(name, op, operands)) else Effect.READ


def _written(name: str, op: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands that may be written: all of an operation that is not known."""
    if (positions := facts(name).writes) is not None:
        return [operands[position] for position in positions]
    if name == "func.call" and _WRITES in op.attributes:
        return [operands[position] for position in ir.DenseI64ArrayAttr(op.attributes[_WRITES])]
    if name.startswith("linalg.") and "operandSegmentSizes" in op.attributes:
        inputs, *_ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        return operands[inputs:]
    return operands


def mark_writes(call: Any, body: Sequence[Any]) -> None:
    """Note on ``call``, whose operands are what the operations of ``body`` use, which buffers they may write."""
    origins: dict[Any, Any] = {}
    written: set[Any] = set()
    for root in body:
        for op in mlir_util.walk(root):
            operands = list(op.operands)
            source = facts(op.name).view_of
            if source is not None:
                origins[op.results[0]] = origins.get(operands[source], operands[source])
                continue
            # Buffers that loops of a kernel carry are not followed.
            found = operands if op.name.startswith("scf.") else _written(op.name, op, operands)
            written |= {origins.get(value, value) for value in found}
    positions = [
        number
        for number, value in enumerate(call.operands)
        if mlir_util.is_memref(value.type) and value in written
    ]
    mark_written(call, positions)


def mark_written(call: Any, positions: Sequence[int]) -> None:
    """Note on ``call`` the positions of the buffers that it may write."""
    call.attributes[_WRITES] = ir.DenseI64ArrayAttr.get(positions, call.context)


def mark_pairs(call: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
    """Note on ``call`` inputs with outputs that may be in their memory."""
    positions = {value: number for number, value in enumerate(call.operands)}
    numbers = [positions[value] for pair in pairs if all(v in positions for v in pair) for value in pair]
    if numbers:
        call.attributes[_ELEMENTWISE] = ir.DenseI64ArrayAttr.get(numbers, call.context)


def elementwise_pairs(op: Any) -> list[tuple[Any, Any]]:
    """Inputs of ``op`` with outputs that may be in their memory."""
    if op.name == "func.call":
        if _ELEMENTWISE not in op.attributes:
            return []
        numbers, operands = list(ir.DenseI64ArrayAttr(op.attributes[_ELEMENTWISE])), list(op.operands)
        written = _written(op.name, op, operands)  # an input that the kernel makes itself has elements to lose
        pairs = [(operands[a], operands[b]) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        return [(source, target) for source, target in pairs if source not in written]
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
        if source.type == target.type
        and {m for operand, m in zip(operands, maps, strict=True) if operand == source} == {written}
    ]


def _body_reads(op: Any) -> bool:
    """Whether the body loads elements of buffers, any of them, beside those that the operation gives it."""
    bodies = (inner for child in mlir_util.children(op) for inner in mlir_util.walk(child))
    return any(mlir_util.is_memref(value.type) for inner in bodies for value in inner.operands)
