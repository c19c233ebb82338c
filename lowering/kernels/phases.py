"""Convolutions over an image with holes, as transposed ones are, without products by the zeros in the holes.

Of a result's elements along an axis, those at ``phase + n * holes`` read the same part of the window: each phase
is a convolution of the image without holes. Phases of the same sizes are computed by one call of a kernel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.images import ImageAxis
from devscope.lowering.kernels.windowed import Windowed


@dataclass(frozen=True)
class Shift:
    """How much later than in the first phase of the same sizes another one begins: elements of the filters and of
    the result, and indices of what is read, by axis of the image."""

    filters: int = 0
    result: int = 0
    image: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True)
class _Part:
    """Elements from ``begin`` on, ``holes`` apart, along axis ``axis`` of a buffer."""

    axis: int
    begin: int
    size: int


def phases(found: Windowed) -> list[Windowed] | None:
    """What ``found`` is made of, over views in front of it, but for what no window reaches. None without holes, or
    if sizes but those of the first axes are not known."""
    with_holes = [number for number, axis in enumerate(found.axes) if axis.place.holes > 1]
    if not with_holes or found.w is None or not all(map(_is_at_known_places, (found.result, found.weights))):
        return None
    choices = [_phases(found, number) for number in with_holes]
    made: list[Windowed] = []
    for chosen in product(*(each or [] for each in choices)):
        axes = list(found.axes)
        results: list[tuple[_Part, int]] = []
        windows: list[tuple[_Part, int]] = []
        for number, (place, result, window) in zip(with_holes, chosen, strict=True):
            results.append((result, axes[number].place.holes))
            windows += [] if window is None else [(window, axes[number].place.holes)]
            axes[number] = replace(axes[number], place=place)
        image = replace(found.image, axes=tuple(axis.place for axis in axes))
        weights, result = (_part_of(found, *each) for each in ((found.weights, windows), (found.result, results)))
        made.append(replace(found, image=image, axes=axes, weights=weights, result=result))
    return None if None in choices else made


def have_everything(found: Windowed) -> bool:
    """Whether each element of the result is one of a phase."""
    windows = [1 if axis.inner is None else found.extent(axis.inner) for axis in found.axes]
    return all((window or 0) >= axis.place.holes for window, axis in zip(windows, found.axes, strict=True))


def of_same_sizes(parts: Iterable[Windowed]) -> list[tuple[Windowed, list[Shift]]]:
    """For phases of the same sizes, the first one, whose views alone are left, and the shifts of all."""
    made: dict[tuple[int, ...], tuple[Windowed, list[Shift]]] = {}
    for phase in parts:
        views: list[Any] = [phase.result, phase.weights]
        sizes = tuple(size for view in views for size in ir.MemRefType(view.type).shape)
        first, shifts = made.setdefault(sizes, (phase, []))
        shifts.append(_shift(first, phase))
        if first is not phase:
            for view in views:
                view.owner.operation.erase()
    return list(made.values())


def _shift(first: Windowed, phase: Windowed) -> Shift:
    filters, result = (
        _offset(there) - _offset(here)
        for here, there in ((first.weights, phase.weights), (first.result, phase.result))
    )
    lows = [[each.axes[number].place.low for each in (first, phase)] for number in range(len(first.axes))]
    known = {number: each for number, each in enumerate(lows) if all(isinstance(part, int) for part in each[0])}
    return Shift(filters, result, {number: sum(here) - sum(there) for number, (here, there) in known.items()})


def _phases(found: Windowed, number: int) -> list[tuple[ImageAxis, _Part, _Part | None]] | None:
    """Along an axis of the image, for each phase that a window reaches: the axis without holes, parts of the
    result and the filters, if these have such an axis."""
    axis = found.axes[number]
    holes, lows = axis.place.holes, axis.place.low
    if axis.outer is None or axis.step != 1 or axis.dilation != 1 or not all(isinstance(low, int) for low in lows):
        return None
    pixels, window = found.extent(axis.outer), 1 if axis.inner is None else found.extent(axis.inner)
    if pixels is None or window is None:
        return None
    low = sum(lows)
    made: list[tuple[ImageAxis, _Part, _Part | None]] = []
    for phase in range(min(holes, pixels)):
        begin = (low - phase) % holes
        if begin >= window:
            continue
        place = ImageAxis(axis.place.source, (-((phase + begin - low) // holes),), 1, True)
        result = _Part(found.axes_of_result[axis.outer], phase, -(-(pixels - phase) // holes))
        part = axis.inner
        taps = None if part is None else _Part(found.axes_of_weights[part], begin, -(-(window - begin) // holes))
        made.append((place, result, taps))
    return made


def _part_of(found: Windowed, buffer: Any, parts: list[tuple[_Part, int]]) -> Any:
    type_ = ir.MemRefType(buffer.type)
    offsets, steps, sizes = [0] * type_.rank, [1] * type_.rank, list(type_.shape)
    for part, holes in parts:
        offsets[part.axis], sizes[part.axis], steps[part.axis] = part.begin, part.size, holes
    strides, begin = type_.get_strides_and_offset()
    begin += sum(offset * stride for offset, stride in zip(offsets, strides, strict=True))
    moved = [step * stride for step, stride in zip(steps, strides, strict=True)]
    unknown = type_.is_dynamic_dim(0)
    shape = ["?" if unknown and axis == 0 else str(size) for axis, size in enumerate(sizes)]
    result = f"memref<{'x'.join(shape)}x{type_.element_type}, strided<{moved}, offset: {begin}>>"
    lines: list[str] = []
    if unknown:
        lines = ["%axis = arith.constant 0 : index", f"%size = memref.dim %0, %axis : {type_}"]
        shape[0] = "%size"
    lines.append(f"%part = memref.subview %0 {offsets} [{', '.join(shape)}] {steps} : {type_} to {result}")
    return mlir_util.insert(found.op, "\n".join(lines), [buffer])[-1].results[0]


def _offset(view: Any) -> int:
    return ir.MemRefType(view.type).get_strides_and_offset()[1]


def _is_at_known_places(buffer: Any) -> bool:
    """Whether it is known where elements are: only the number of those along the first axis may not be."""
    type_ = ir.MemRefType(buffer.type)
    first_alone = not any(type_.is_dynamic_dim(axis) for axis in range(1, type_.rank))
    return first_alone and mlir_util.is_whole_buffer(type_)
