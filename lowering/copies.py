"""``memref.copy``: which copies move whole buffers, the loops that others are, and copies through a dense buffer.

Bufferisation makes a slice dense before it goes to a device, and a result dense before it goes into a slice. A
slice whose elements stand side by side needs neither.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_COPY = "memref.copy"

#: What may stand between the two copies: it neither reads nor writes the contents of buffers.
_HARMLESS = frozenset(
    {"cf.assert", "memref.alloc", "memref.cast", "memref.dim", "memref.subview", "bufferization.to_tensor"}
)


def is_whole_copy(copy: Any) -> bool:
    """True if both sides of a ``memref.copy`` are contiguous buffers that start at offset 0."""
    return all(mlir_util.is_whole_buffer(value.type) for value in copy.operands)


def copy_as_linalg(copy: Any) -> None:
    """``memref.copy`` -> ``linalg.copy``: the form that loops come from."""
    source, target = copy.operands
    mlir_util.insert(copy, f"linalg.copy ins(%0 : {source.type}) outs(%1 : {target.type})", [source, target])
    copy.erase()


def copy_directly(module: Any) -> None:
    """Join ``host -> dense -> device`` and ``device -> dense -> host``, before anything is freed."""
    _, *ops = mlir_util.walk(module.operation)
    for block in mlir_util.by_block(ops):
        _join_copies(block)


def _join_copies(ops: list[Any]) -> None:
    """``ops``: a block. The second copy must come before anything can change what the first one read."""
    first: Any = None
    for op in ops:
        if first is not None and op.name == _COPY and op.operands[0] == first.operands[1] and _join(first, op):
            first = None
        elif op.name == _COPY and _fills_what_is_read_once(op):
            first = op
        elif first is not None and not _keeps_what_was_read(op, first):
            first = None


def _keeps_what_was_read(op: Any, copy: Any) -> bool:
    """Whether ``op``, behind ``copy``, leaves the source of ``copy`` as it is."""
    if op.name == _COPY:
        return mlir_util.is_on_device(op.operands[1]) != mlir_util.is_on_device(copy.operands[0])
    return op.name in _HARMLESS or op.name.startswith("arith.")


def _fills_what_is_read_once(copy: Any) -> bool:
    dense = copy.operands[1]
    if isinstance(dense.owner, ir.Block) or dense.owner.operation.name != "memref.alloc":
        return False
    return len(list(dense.uses)) == 2


def _join(first: Any, second: Any) -> bool:
    source, dense, target = first.operands[0], first.operands[1], second.operands[1]
    on_device = [mlir_util.is_on_device(value) for value in (source, dense, target)]
    if on_device not in ([True, False, False], [False, False, True]):
        return False
    if not all(is_contiguous(value.type) for value in (source, target)):
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
