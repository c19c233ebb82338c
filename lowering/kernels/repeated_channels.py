"""Convolutions that have several filters for each channel of the image, which stand side by side in the result.

They are windows over an image each of whose channels is repeated: vectors have elements of several channels.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import collapsed
from devscope.lowering.kernels.windowed import Windowed

_MOST = 8
"""Filters of a channel: a kernel for convolutions is as fast with more."""


def with_repeated_channels(found: Windowed) -> Windowed | None:
    """``found`` with one loop for channels and their filters, over views in front of it; None for others."""
    of_result, of_weights = found.axes_of_result, found.axes_of_weights
    if found.w is None or found.weights is None or len(of_result) < 2:
        return None
    *_, channels, filters = sorted(of_result, key=lambda loop: of_result[loop])
    count, number = found.extent(filters), found.axis_with(channels)
    if number is None or count is None or not 1 < count <= _MOST or found.axis_with(filters) is not None:
        return None
    if channels not in of_weights or of_weights.get(filters) != of_weights[channels] + 1:
        return None
    axis = found.axes[number]
    if axis.inner is not None or axis.step != 1 or axis.place.checked or axis.place.holes != 1:
        return None
    moved = {each.inner for each in found.axes if each.outer is not None}
    if not set(of_weights) <= {channels, filters, *moved}:
        return None  # sums over several channels
    if not all(mlir_util.is_whole_buffer(each.type) for each in (found.result, found.weights)):
        return None
    axes = [replace(each, outer=filters, repeats=count) if each is axis else each for each in found.axes]
    result, axes_of_result = _merged(found.op, found.result, of_result, channels)
    weights, axes_of_weights = _merged(found.op, found.weights, of_weights, channels)
    return replace(
        found,
        axes=axes,
        weights=weights,
        axes_of_weights=axes_of_weights,
        result=result,
        axes_of_result=axes_of_result,
    )


def _merged(op: Any, buffer: Any, axes: Mapping[int, int], loop: int) -> tuple[Any, dict[int, int]]:
    """A view of ``buffer`` in which the axis of ``loop`` and the next one are one, and the axes of other loops."""
    at, rank = axes[loop], ir.MemRefType(buffer.type).rank
    groups = [[axis, axis + 1] if axis == at else [axis] for axis in range(rank) if axis != at + 1]
    others = {other: axis - (axis > at) for other, axis in axes.items() if other != loop}
    return collapsed(mlir_util.Builder(op), buffer, groups), others
