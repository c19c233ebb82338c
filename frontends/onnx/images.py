"""Samples of images and pads whose sizes are known at run time only, in operators that torch-mlir has right."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused


def cubic(w: Writer, part: str, a: float) -> list[str]:
    """Keys's weights of the elements at -1, 0, 1 and 2 of a place ``part`` behind the one at 0."""

    def polynomial(at: str, *coefficients: float) -> str:
        result = w.number(coefficients[0])
        for number in coefficients[1:]:
            result = w.op("Add", w.op("Mul", result, at), w.number(number))
        return result

    rest = w.op("Sub", w.number(1), part)
    near, far = (a + 2, -(a + 3), 0, 1), (a, -5 * a, 8 * a, -4 * a)
    outer = [polynomial(w.op("Add", at, w.number(1)), *far) for at in (part, rest)]
    return [outer[0], polynomial(part, *near), polynomial(rest, *near), outer[1]]


@rewrites("GridSample")
def _grid_sample(w: Writer) -> None:
    """As `resampling.grid_sample`: every place's neighbours, which lie in rows of pixels, weighed."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(w.attr("mode", "linear"), w.attr("mode", "linear"))
    count = w.rank(0) - 2
    sizes = [w.op("Cast", w.extent(w[0], axis), to=w.type()) for axis in range(2, 2 + count)]
    places = [_place(w, size, count - 1 - axis) for axis, size in enumerate(sizes)]
    sampler = _Sampler(w, sizes)
    if mode == "nearest":
        w.op("Identity", sampler.at([w.op("Round", place) for place in places]), result=0)
        return
    floors = [w.op("Floor", place) for place in places]
    parts = [w.op("Sub", place, floor) for place, floor in zip(places, floors, strict=True)]
    if mode == "linear":
        first, weights = 0, [[w.op("Sub", w.number(1), part), part] for part in parts]
    else:
        first, weights = -1, [cubic(w, part, -0.75) for part in parts]
    total = ""
    for corner in itertools.product(range(len(weights[0])), repeat=count):
        at = [w.op("Add", floor, w.number(first + one)) for floor, one in zip(floors, corner, strict=True)]
        term = sampler.at(at)
        for weight, one in zip(weights, corner, strict=True):
            term = w.op("Mul", term, w.unsqueeze(weight[one], 1))
        total = w.op("Add", total, term) if total else term
    w.op("Identity", total, result=0)


def _place(w: Writer, size: str, column: int) -> str:
    """A coordinate of the grid, from -1 to 1, as a place in the image."""
    one, half = w.number(1), w.number(0.5)
    given = w.op("Add", w.op("Gather", w[1], w.constant(column, np.int64), axis=-1), one)
    if w.attr("align_corners", 0):
        return w.op("Mul", given, w.op("Mul", w.op("Sub", size, one), half))
    return w.op("Mul", w.op("Sub", w.op("Mul", given, size), one), half)


class _Sampler:
    """Pixels of a GridSample's image, at whole places that may be outside of it."""

    def __init__(self, w: Writer, sizes: Sequence[str]) -> None:
        self.w, self.sizes, self.padding = w, sizes, w.attr("padding_mode", "zeros")
        rank = len(sizes) + 2
        rows = w.op("Transpose", w[0], perm=[0, *range(2, rank), 1])
        self.extents = [w.extent(w[0], axis) for axis in range(2, rank)]
        count = w.extent(w[0], 0)
        for extent in self.extents:
            count = w.op("Mul", count, extent)
        shape = w.op("Concat", *(w.reshape(one, 1) for one in (count, w.extent(w[0], 1))), axis=0)
        self.rows = w.op("Reshape", w.op("Reshape", rows, w.constant([-1], np.int64)), shape)
        self.images = w.unsqueeze(w.range(w.extent(w[0], 0)), *range(1, len(sizes) + 1))
        self.perm = [0, rank - 1, *range(1, rank - 1)]

    def at(self, places: Sequence[str]) -> str:
        w, zero, inside = self.w, self.w.number(0), ""
        row = self.images
        for place, size, extent in zip(places, self.sizes, self.extents, strict=True):
            last = w.op("Sub", size, w.number(1))
            if self.padding == "reflection":
                place = w.op("Round", self._reflected(place, size, last))
            within = w.op("Min", w.op("Max", place, zero), last)
            same = w.op("Equal", within, place if self.padding == "zeros" else within)
            within = w.op("Where", same, within, zero)  # NaN is no place
            if self.padding == "zeros":
                inside = w.op("And", inside, same) if inside else same
            row = w.op("Add", w.op("Mul", row, extent), w.op("Cast", within, to=TensorProto.INT64))
        found = w.op("Transpose", w.op("Gather", self.rows, row, axis=0), perm=self.perm)
        return w.op("Where", w.unsqueeze(inside, 1), found, zero) if inside else found

    def _reflected(self, place: str, size: str, last: str) -> str:
        """Folded into the image, at the centres of its border elements or at their outer edges."""
        w = self.w
        corners = bool(w.attr("align_corners", 0))
        low, span = w.number(0 if corners else -0.5), last if corners else size
        around = w.op("Max", w.op("Add", span, span), w.number(1))
        away = w.op("Abs", w.op("Sub", place, low))
        rest = w.op("Sub", away, w.op("Mul", w.op("Floor", w.op("Div", away, around)), around))
        return w.op("Add", w.op("Min", rest, w.op("Sub", w.op("Add", span, span), rest)), low)


@rewrites("Pad")
def _pad(w: Writer) -> None:
    """By as much as is computed, torch-mlir pads nothing, and it lacks a mode: one axis after the other."""
    if w.opset < 11 or (w.data(1) is not None and w.attr("mode", "constant") != "wrap"):
        w.op("Pad", *w.node.input, result=0, **w.attributes)
        return
    rank, mode = w.rank(0), w.attr("mode", "constant")
    axes = [*range(rank)]
    if w.has(3):
        if w.data(3) is None:
            raise Refused("Pad of shapes known at run time only, along axes that are computed")
        axes = [int(axis) % rank for axis in w.data(3)]
    pads, x, zero, one = w.op("Cast", w[1], to=TensorProto.INT64), w[0], *(w.constant(k, np.int64) for k in (0, 1))
    filler = w.op("Reshape", w[2], w.constant([], np.int64)) if w.has(2) else w.number(0)
    for number, axis in enumerate(axes):
        low, high = (w.op("Gather", pads, w.constant(k, np.int64), axis=0) for k in (number, number + len(axes)))
        extent = w.extent(x, axis)
        places = w.op("Range", w.op("Neg", low), w.op("Add", extent, high), one)
        last = w.op("Sub", extent, one)
        if mode == "constant":
            x = filled(w, x, axis, filler, [low, high])
            continue
        if mode == "wrap":
            places = w.op("Mod", places, extent)
        elif mode == "reflect":
            around = w.op("Max", w.op("Add", last, last), one)
            places = w.op("Mod", w.op("Abs", places), around)
            places = w.op("Min", places, w.op("Sub", around, places))
        x = w.op("Gather", x, w.op("Min", w.op("Max", places, zero), last), axis=axis)
    w.op("Identity", x, result=0)


_END = 1 << 31
"""Of a Slice: behind the last."""


def filled(w: Writer, x: str, axis: int, filler: str, ends: Sequence[str]) -> str:
    """With so many elements more at both ends, or less."""
    zero = w.constant(0, np.int64)
    shape = w.op("Shape", x)
    pieces = [
        w.op("Slice", shape, *(w.constant([k], np.int64) for k in pair)) for pair in ((0, axis), (axis + 1, _END))
    ]
    first, behind = (w.reshape(w.op("Neg", w.op("Min", end, zero)), 1) for end in ends)
    end = w.op("Sub", w.reshape(w.extent(x, axis), 1), behind)
    kept = w.op("Slice", x, first, end, w.constant([axis], np.int64))
    sides = [
        w.op("Expand", filler, w.op("Concat", pieces[0], w.reshape(w.op("Max", end, zero), 1), pieces[1], axis=0))
        for end in ends
    ]
    return w.op("Concat", sides[0], kept, sides[1], axis=axis)
