"""Convolutions over an image with holes, as transposed ones are, without products by the zeros in the holes.

Of a result's elements along an axis, those at ``phase + n * holes`` read the same part of the window: each phase
is a convolution of the image without holes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.images import ImageAxis
from devscope.lowering.kernels.windowed import Windowed


@dataclass(frozen=True)
class Phase:
    """``found`` has a result of its own, which is to be copied to ``place``, a part of the whole one."""

    found: Windowed
    place: Any


@dataclass(frozen=True)
class _Part:
    """Elements from ``begin`` on, ``holes`` apart, along axis ``axis`` of a buffer."""

    axis: int
    begin: int
    size: int


def phases(found: Windowed) -> list[Phase] | None:
    """What ``found`` is made of, with buffers in front of it; None without holes, or if sizes are not known."""
    with_holes = [number for number, axis in enumerate(found.axes) if axis.place.holes > 1]
    if not with_holes or found.weights is None or not _is_static(found.result) or not _is_static(found.weights):
        return None
    choices = [list(_phases(found, number)) for number in with_holes]
    if any(part is None for parts in choices for part in parts):
        return None
    made: list[Phase] = []
    for chosen in product(*choices):
        axes = list(found.axes)
        results: list[tuple[_Part, int]] = []
        windows: list[tuple[_Part, int]] = []
        for number, part in zip(with_holes, chosen, strict=True):
            assert part is not None
            place, result, window = part
            results.append((result, axes[number].place.holes))
            windows.append((window, axes[number].place.holes))
            axes[number] = replace(axes[number], place=place)
        place = _part_of(found, found.result, results)
        type_ = ir.MemRefType(place.type)
        own = mlir_util.Builder(found.op).alloc(mlir_util.buffer_type(type_.shape, type_.element_type))
        image = replace(found.image, axes=tuple(axis.place for axis in axes))
        weights = _part_of(found, found.weights, windows)
        made.append(Phase(replace(found, image=image, axes=axes, weights=weights, result=own), place))
    return made


def _phases(found: Windowed, number: int) -> Iterator[tuple[ImageAxis, _Part, _Part] | None]:
    """Along an axis of the image, for each phase: the axis without holes, parts of the result and the filters."""
    axis = found.axes[number]
    holes = axis.place.holes
    low = 0
    for part in axis.place.low:
        if not isinstance(part, int):
            yield None
            return
        low += part
    if axis.outer is None or axis.inner is None or axis.step != 1 or axis.dilation != 1:
        yield None
        return
    pixels, window = found.extent(axis.outer), found.extent(axis.inner)
    if pixels is None or window is None or window < holes:
        yield None
        return
    for phase in range(min(holes, pixels)):
        begin = (low - phase) % holes
        place = ImageAxis(axis.place.source, (-((phase + begin - low) // holes),), 1, True)
        yield (
            place,
            _Part(found.axes_of_result[axis.outer], phase, -(-(pixels - phase) // holes)),
            _Part(found.axes_of_weights[axis.inner], begin, -(-(window - begin) // holes)),
        )


def _part_of(found: Windowed, buffer: Any, parts: list[tuple[_Part, int]]) -> Any:
    type_ = ir.MemRefType(buffer.type)
    offsets, steps, sizes = [0] * type_.rank, [1] * type_.rank, list(type_.shape)
    for part, holes in parts:
        offsets[part.axis], sizes[part.axis], steps[part.axis] = part.begin, part.size, holes
    strides, begin = type_.get_strides_and_offset()
    begin += sum(offset * stride for offset, stride in zip(offsets, strides, strict=True))
    moved = [step * stride for step, stride in zip(steps, strides, strict=True)]
    result = f"memref<{'x'.join(map(str, sizes))}x{type_.element_type}, strided<{moved}, offset: {begin}>>"
    text = f"%part = memref.subview %0 {offsets} {sizes} {steps} : {type_} to {result}"
    return mlir_util.insert(found.op, text, [buffer])[0].results[0]


def _is_static(buffer: Any) -> bool:
    type_ = ir.MemRefType(buffer.type)
    return type_.has_static_shape and mlir_util.is_whole_buffer(type_)
