"""Copies between devices and parts of host buffers, without a dense buffer of the host in between.

Bufferisation makes a slice dense before it goes to a device, and a result dense before it goes into a slice. A
slice whose elements stand side by side needs neither.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_COPY = "memref.copy"

#: What may stand between the two copies: it neither reads nor writes the contents of buffers.
_HARMLESS = frozenset({"memref.alloc", "memref.cast", "memref.dim", "memref.subview", "bufferization.to_tensor"})


def copy_directly(module: Any) -> None:
    """Join ``host -> dense -> device`` and ``device -> dense -> host``, before anything is freed."""
    blocks: dict[Any, list[Any]] = {}
    for op in [*mlir_util.walk(module.operation)][1:]:
        blocks.setdefault(op.block, []).append(op)
    for ops in blocks.values():
        _join_copies(ops)


def _join_copies(ops: list[Any]) -> None:
    """``ops``: a block. The second copy must come before anything can change what the first one read."""
    first: Any = None
    for op in ops:
        if op.name == _COPY:
            joined = first is not None and op.operands[0] == first.operands[1] and _join(first, op)
            first = op if not joined and _fills_what_is_read_once(op) else None
        elif op.name not in _HARMLESS and not op.name.startswith("arith."):
            first = None


def _fills_what_is_read_once(copy: Any) -> bool:
    dense = copy.operands[1]
    if isinstance(dense.owner, ir.Block) or dense.owner.operation.name != "memref.alloc":
        return False
    return len(list(dense.uses)) == 2


def _join(first: Any, second: Any) -> bool:
    source, dense, target = first.operands[0], first.operands[1], second.operands[1]
    on_host = [mlir_util.memory_space(value.type) is None for value in (source, dense, target)]
    # One end is on a device.
    if not on_host[1] or on_host[0] == on_host[2] or not all(is_contiguous(v.type) for v in (source, target)):
        return False
    second.operands[0] = source
    first.erase()
    dense.owner.operation.erase()
    return True


def is_contiguous(type_: Any) -> bool:
    """Whether the elements of a memref stand side by side in row-major order, as far as its type says."""
    memref = ir.MemRefType(type_)
    strides, _ = memref.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_size()
    expected: int | None = 1
    for extent, stride in reversed(list(zip(memref.shape, strides, strict=True))):
        if extent == 1:
            continue
        if expected is None or stride != expected:
            return False
        expected = None if extent == dynamic else expected * extent
    return True
