"""What ``memref.subview`` takes of a buffer: integers, or values of type index where they are not known."""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def numbers(op: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The offsets, sizes and strides of a subview."""
    _, *given = mlir_util.operand_groups(op)
    offsets, sizes, strides = (
        _numbers(op, name, values)
        for name, values in zip(("static_offsets", "static_sizes", "static_strides"), given, strict=True)
    )
    return offsets, sizes, strides


def whole_axes(op: Any) -> list[bool]:
    """Of which axes a subview, with all axes of its buffer, has all indices, as is known."""

    def is_size(given: Any, whole: Any) -> bool:
        return whole is not None and isinstance(whole, int) == isinstance(given, int) and whole == given

    return [
        is_number(offset, 0) and is_number(stride, 1) and is_size(given, size(op.operands[0], axis))
        for axis, (offset, given, stride) in enumerate(zip(*numbers(op), strict=True))
    ]


def is_number(given: Any, number: int) -> bool:
    return isinstance(given, int) and given == number


def size(memref: Any, axis: int) -> Any:
    """An integer, or the value that an axis was given as its size; None for what comes from elsewhere."""
    type_ = ir.MemRefType(memref.type)
    if not type_.is_dynamic_dim(axis):
        return type_.shape[axis]
    if (alloc := mlir_util.maker(memref, "memref.alloc")) is not None:
        return alloc.operands[sum(type_.is_dynamic_dim(before) for before in range(axis))]
    if (view := mlir_util.maker(memref, "memref.subview")) is not None:
        _, sizes, _ = numbers(view)
        return sizes[axis] if len(sizes) == type_.rank else None
    return None


def _numbers(op: Any, name: str, values: Sequence[Any]) -> list[Any]:
    rest = iter(values)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return [next(rest) if number == dynamic else number for number in ir.DenseI64ArrayAttr(op.attributes[name])]
