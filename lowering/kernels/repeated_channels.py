"""Convolutions in groups that have few filters each, which stand side by side in the result.

They are windows over an image whose channels are taken apart and repeated, once for each filter of their group:
vectors have elements of several groups.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_operands import element_bytes
from devscope.lowering.kernels.nest import collapsed
from devscope.lowering.kernels.windowed import Axis, Windowed, strides_of

_MOST = 8
"""Filters of a group."""

_MOST_BYTES = 160
"""Of elements, as many as a group has channels times filters: a kernel for convolutions is as fast with more."""

_MOST_APART = 16
"""Channels of a group for each of its filters."""


def with_repeated_channels(found: Windowed) -> Windowed | None:
    """``found`` with one loop for groups and their filters, over views in front of it; None for others."""
    of_result, of_weights = found.axes_of_result, found.axes_of_weights
    if found.w is None or found.weights is None or not of_result:
        return None
    *others, last = sorted(of_result, key=lambda loop: of_result[loop])
    has_several = found.axis_with(last) is None
    groups = others[-1] if has_several and others else last
    count = found.extent(last) if has_several else 1
    if count is None or count > _MOST or groups not in of_weights:
        return None
    axes = _axes(found, groups, last, count)
    if axes is None or not has_several:
        return None if axes is None or len(axes) == len(found.axes) else replace(found, axes=axes)
    if of_weights.get(last) != of_weights[groups] + 1:
        return None
    if not all(mlir_util.is_whole_buffer(each.type) for each in (found.result, found.weights)):
        return None
    result, axes_of_result = _merged(found.op, found.result, of_result, groups)
    weights, axes_of_weights = _merged(found.op, found.weights, of_weights, groups)
    return replace(
        found,
        axes=axes,
        weights=weights,
        axes_of_weights=axes_of_weights,
        result=result,
        axes_of_result=axes_of_result,
    )


def _axes(found: Windowed, groups: int, last: int, count: int) -> list[Axis] | None:
    """Those of the image, of which channels are one: group ``last / count`` times its channels, and a channel."""
    number = found.axis_with(groups)
    moved = {axis.inner for axis in found.axes if axis.outer is not None}
    summed = [loop for loop in found.axes_of_weights if loop not in (groups, last) and loop not in moved]
    inner = None if len(summed) != 1 else found.axis_with(summed[0])
    if number is None or len(summed) > 1 or (summed and inner is None):
        return None
    axis = found.axes[number]
    if axis.inner is not None or axis.step != 1 or axis.place.checked or axis.place.holes != 1:
        return None
    if inner is None:
        return [replace(each, outer=last, repeats=count) if each is axis else each for each in found.axes]
    channels, of_group = found.axes[inner], found.extent(summed[0])
    if channels.dilation != 1 or channels.place.checked or channels.place.holes != 1 or of_group is None:
        return None
    sources = [axis.place.source, channels.place.source]
    strides = [None if source is None else strides_of(found.image.value)[source] for source in sources]
    if strides[1] is None or strides[0] != of_group * strides[1]:
        return None
    if of_group * count * element_bytes(found.element) > _MOST_BYTES or of_group > _MOST_APART * count:
        return None
    one = replace(channels, outer=last, step=of_group, repeats=count)
    return [one if each is channels else each for each in found.axes if each is not axis]


def _merged(op: Any, buffer: Any, axes: Mapping[int, int], loop: int) -> tuple[Any, dict[int, int]]:
    """A view of ``buffer`` in which the axis of ``loop`` and the next one are one, and the axes of other loops."""
    at, rank = axes[loop], ir.MemRefType(buffer.type).rank
    groups = [[axis, axis + 1] if axis == at else [axis] for axis in range(rank) if axis != at + 1]
    others = {other: axis - (axis > at) for other, axis in axes.items() if other != loop}
    return collapsed(mlir_util.Builder(op), buffer, groups), others
