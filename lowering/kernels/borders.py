"""Fills of buffers whose middle is copied right afterwards, as by a pad, fill the border alone.

The copy comes first: it goes through memory in order, and the border is in the cache, then, row by row.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import subviews
from devscope.lowering.kernels.buffer_users import filled_value, is_quiet
from devscope.lowering.memory.effects import buffer_of
from devscope.lowering.mlir_util import Builder


def fill_borders(module: Any) -> None:
    for fill in mlir_util.named(module.operation, "linalg.fill", "linalg.map"):
        value = filled_value(fill)
        copy = next((op for op in mlir_util.ops_behind(fill) if not is_quiet(op)), None)
        is_outside = value is not None and value in mlir_util.captured_values(fill)
        if is_outside and copy is not None and copy.name == "memref.copy":
            _fill_border(fill, value, copy)


def _fill_border(fill: Any, value: Any, copy: Any) -> None:
    whole, (source, target) = fill.operands[len(fill.operands) - 1], copy.operands
    view, type_ = mlir_util.maker(target, "memref.subview"), ir.MemRefType(whole.type)
    if (
        view is None
        or view.operands[0] != whole
        or buffer_of(source) == whole
        or not mlir_util.is_whole_buffer(type_)
    ):
        return
    offsets, sizes, strides = subviews.numbers(view)
    begins: list[Any] = [0] * type_.rank
    shape = [subviews.size(whole, axis) for axis in range(type_.rank)]
    if buffer_of(source) == whole or any(size is None for size in shape):
        return
    if ir.MemRefType(target.type).rank != type_.rank or not all(subviews.is_number(each, 1) for each in strides):
        return
    build = Builder(next(mlir_util.ops_behind(copy)))
    for axis, (offset, size, is_whole) in enumerate(zip(offsets, sizes, subviews.whole_axes(view), strict=True)):
        if is_whole:
            continue
        end = _sum(build, offset, size)
        for begin, width in ((0, offset), (end, _sum(build, shape[axis], end, "arith.subi"))):
            if not subviews.is_number(width, 0):
                begins[axis], shape[axis] = begin, width
                _fill(build, value, whole, begins, shape)
        begins[axis], shape[axis] = offset, size
    fill.erase()


def _sum(build: Builder, left: Any, right: Any, name: str = "arith.addi") -> Any:
    """Or the difference, of integers or values."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right if name == "arith.addi" else left - right
    values = [build.constant(each) if isinstance(each, int) else each for each in (left, right)]
    return build.value(name, values, build.index)


def _fill(build: Builder, value: Any, whole: Any, offsets: list[Any], sizes: list[Any]) -> None:
    type_ = ir.MemRefType(whole.type)
    strides, _ = type_.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    operands = [whole, value]

    def text(number: Any) -> str:
        if isinstance(number, int):
            return str(number)
        operands.append(number)
        return f"%{len(operands) - 1}"

    taken = [", ".join(map(text, each)) for each in (offsets, sizes, [1] * type_.rank)]
    pairs = zip(offsets, strides, strict=True)
    steps = [(offset, stride) for offset, stride in pairs if not subviews.is_number(offset, 0)]
    is_known = all(isinstance(offset, int) and stride != dynamic for offset, stride in steps)
    begin = sum(offset * stride for offset, stride in steps) if is_known else "?"
    layout = ", ".join("?" if stride == dynamic else str(stride) for stride in strides)
    shape = "".join(f"{size}x" if isinstance(size, int) else "?x" for size in sizes)
    space = "" if type_.memory_space is None else f", {type_.memory_space}"
    part = f"memref<{shape}{type_.element_type}, strided<[{layout}], offset: {begin}>{space}>"
    build.insert(
        f"%part = memref.subview %0[{taken[0]}] [{taken[1]}] [{taken[2]}] : {whole.type} to {part}\n"
        f"linalg.fill ins(%1 : {value.type}) outs(%part : {part})",
        operands,
    )
