"""Resize as elements that are taken, one axis after the other: see `rewrites`."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.images import cubic
from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused


@rewrites("Resize")
def _resize(w: Writer) -> None:
    """One axis after the other, at places that are computed: the nearest element, or between two, or four."""
    mode, kind = w.attr("mode", "nearest"), w.attr("coordinate_transformation_mode", "half_pixel")
    plain = w.attr("keep_aspect_ratio_policy", "stretch") == "stretch" and not w.attr("antialias", 0)
    kinds = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
    if (
        mode not in ("nearest", "linear", "cubic")
        or kind not in kinds
        or not plain
        or w.attr("exclude_outside", 0)
    ):
        raise Refused(f"Resize of shapes known at run time only, of mode {mode} and coordinates {kind}")
    x, rank = w[0], w.rank(0)
    axes = [axis % rank for axis in w.attr("axes") or range(rank)]
    scales = np.asarray(() if w.data(2) is None else w.data(2))
    by_scales = scales.size > 0
    if not by_scales and not w.has(3):
        raise Refused("Resize of shapes known at run time only, of scales that are computed")
    for number, axis in enumerate(axes):
        if by_scales and scales[number] == 1:
            continue
        before, after = (w.graph.shapes.get(name, [None] * rank)[axis] for name in (w[0], w.node.output[0]))
        if not by_scales and before is not None and before == after:
            continue
        extent = w.op("Cast", w.extent(x, axis), to=TensorProto.FLOAT)
        if by_scales:
            scale = w.constant(scales[number])
            size = w.op("Floor", w.op("Mul", extent, scale))
        else:
            place = w.constant(number, np.int64)
            size = w.op("Cast", w.op("Gather", w[3], place, axis=0), to=TensorProto.FLOAT)
            scale = w.op("Div", size, extent)
        x = _resized(w, x, axis, extent, size, scale, mode, kind)
    w.op("Identity", x, result=0)


def _resized(w: Writer, x: str, axis: int, extent: str, size: str, scale: str, mode: str, kind: str) -> str:
    one, half, zero = (w.constant(number) for number in (1, 0.5, 0))
    count = w.op("Cast", size, to=TensorProto.INT64)
    numbers = w.op("Range", w.constant(0, np.int64), count, w.constant(1, np.int64))
    place = w.op("Cast", numbers, to=TensorProto.FLOAT)
    last = w.op("Sub", extent, one)
    if kind == "asymmetric":
        at = w.op("Div", place, scale)
    elif kind == "align_corners":
        steps = w.op("Max", w.op("Sub", w.op("Mul", extent, scale), one), one)
        at = w.op("Div", w.op("Mul", place, last), steps)
    else:
        at = w.op("Sub", w.op("Div", w.op("Add", place, half), scale), half)
        if kind == "pytorch_half_pixel":
            at = w.op("Mul", at, w.op("Cast", w.op("Greater", size, one), to=TensorProto.FLOAT))

    def taken(where: str) -> str:
        inside = w.op("Min", w.op("Max", where, zero), last)
        return w.op("Gather", x, w.op("Cast", inside, to=TensorProto.INT64), axis=axis)

    if mode == "nearest":
        how = w.attr("nearest_mode", "round_prefer_floor")
        if how == "round_prefer_floor":
            at = w.op("Ceil", w.op("Sub", at, half))
        elif how == "round_prefer_ceil":
            at = w.op("Floor", w.op("Add", at, half))
        else:
            at = w.op(how.capitalize(), at)
        return taken(at)
    first = w.op("Floor", at)
    shape = w.constant([-1, *[1] * (w.rank(0) - 1 - axis)], np.int64)
    part = w.op("Reshape", w.op("Sub", at, first), shape)
    if mode == "cubic":
        weights = cubic(w, part, w.attr("cubic_coeff_a", -0.75))
        terms = [
            w.op("Mul", taken(w.op("Add", first, w.constant(offset))), weight)
            for offset, weight in enumerate(weights, -1)
        ]
        return w.op("Sum", *terms)
    low, high = taken(first), taken(w.op("Add", first, one))
    return w.op("Add", low, w.op("Mul", w.op("Sub", high, low), part))
