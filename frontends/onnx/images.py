"""Samples of images and pads whose sizes are known at run time only, in operators that torch-mlir has right."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

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
    sampler = Sampler(w, w[0], w.range(w.extent(w[0], 0)), w.attr("padding_mode", "zeros"))
    places = [_place(w, size, count - 1 - axis) for axis, size in enumerate(sampler.sizes)]
    if mode == "nearest":
        w.op("Identity", sampler.at([w.op("Round", place) for place in places]), result=0)
    else:
        w.op("Sum", *sampler.weighed(places, cubic if mode == "cubic" else halves), result=0)


def halves(w: Writer, part: str, _: float) -> list[str]:
    """The weights of the elements at 0 and 1 of a place ``part`` behind the one at 0."""
    return [w.op("Sub", w.number(1), part), part]


def _place(w: Writer, size: str, column: int) -> str:
    """A coordinate of the grid, from -1 to 1, as a place in the image."""
    one, half = w.number(1), w.number(0.5)
    given = w.op("Add", w.op("Gather", w[1], w.constant(column, np.int64), axis=-1), one)
    if w.attr("align_corners", 0):
        return w.op("Mul", given, w.op("Mul", w.op("Sub", size, one), half))
    return w.op("Mul", w.op("Sub", w.op("Mul", given, size), one), half)


class Sampler:
    """Pixels of images, [N, C, ...], at places that may be outside of them; ``images`` says of which, by the first
    dimension of places. They have as many dimensions as the images' channels, unless ``dims`` says how many."""

    def __init__(self, w: Writer, x: str, images: str, padding: str, dims: int | None = None) -> None:
        self.w, self.padding, rank = w, padding, w.rank(0)
        dims = dims or rank - 1
        count, channels, *self.extents = (w.extent(x, axis) for axis in range(rank))
        self.sizes = [w.op("Cast", extent, to=w.type()) for extent in self.extents]
        for extent in self.extents:
            count = w.op("Mul", count, extent)
        self.rows = w.shaped(w.op("Transpose", x, perm=[0, *range(2, rank), 1]), count, channels)
        self.images = w.unsqueeze(images, *range(1, dims))
        self.perm = [0, dims, *range(1, dims)]

    def within(self, body: Writer) -> Sampler:
        """The same in the body of a loop."""
        inner = copy.copy(self)
        inner.w = body
        return inner

    def weighed(self, places: Sequence[str], weights: Callable[[Writer, str, float], list[str]]) -> list[str]:
        """The neighbours of each place, times their weights along all axes."""
        w = self.w
        floors = [w.op("Floor", place) for place in places]
        along = [weights(w, w.op("Sub", one, low), -0.75) for one, low in zip(places, floors, strict=True)]
        first = 1 - len(along[0]) // 2
        terms: list[str] = []
        for corner in itertools.product(range(len(along[0])), repeat=len(places)):
            at = [w.op("Add", floor, w.number(first + one)) for floor, one in zip(floors, corner, strict=True)]
            term = self.at(at)
            for weight, one in zip(along, corner, strict=True):
                term = w.op("Mul", term, w.unsqueeze(weight[one], 1))
            terms.append(term)
        return terms

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


@rewrites("DeformConv")
def _deformed_convolution(w: Writer) -> None:
    """Samples of each place in the kernel, moved by the offsets, and a product with the weights of all channels."""
    weights = [size for size in w.shape(1) if isinstance(size, int)]
    if len(weights) != 4:
        raise Refused("DeformConv of shapes known at run time only, whose weights are, or not of two dimensions")
    kernel, groups = weights[2:], w.attr("offset_group", 1)
    taps = kernel[0] * kernel[1]
    strides, dilations, pads = w.attr("strides") or [1, 1], w.attr("dilations") or [1, 1], w.attr("pads") or [0, 0]
    images, channels, *extents = (w.extent(w[0], axis) for axis in range(4))
    size = [w.extent(w[2], axis) for axis in (2, 3)]
    # Groups of channels are images of their own: they have other offsets.
    many, one = w.constant(groups, np.int64), w.op("Div", channels, w.constant(groups, np.int64))
    count = w.op("Mul", images, many)
    x = w.shaped(w[0], count, one, *extents) if groups > 1 else w[0]
    offsets = w.shaped(w[2], count, taps, 2, *size)
    places: list[str] = []
    for axis, of in enumerate(np.unravel_index(np.arange(taps), kernel)):
        shape = [-1, 1] if axis == 0 else [-1]
        first = w.number((of * dilations[axis] - pads[axis]).reshape(-1, 1, 1))
        steps = w.op("Mul", w.op("Cast", w.range(size[axis]), to=w.type()), w.number(strides[axis]))
        moved = w.op("Add", w.op("Gather", offsets, w.constant(axis, np.int64), axis=2), first)
        places.append(w.op("Add", moved, w.reshape(steps, *shape)))
    sampler = Sampler(w, x, w.range(count), "zeros", dims=4)
    found = w.op("Sum", *sampler.weighed(places, halves))
    if w.has(4):
        found = w.op("Mul", found, w.shaped(w[4], count, 1, taps, *size))
    found = w.shaped(found, images, w.op("Mul", channels, w.constant(taps, np.int64)), *size)
    flat = w.reshaped(1, weights[0], weights[1] * taps, 1, 1)
    w.op("Conv", found, flat, *w.node.input[3:4], group=w.attr("group", 1), kernel_shape=[1, 1], result=0)


@rewrites("AffineGrid")
def _affine_grid(w: Writer) -> None:
    """Places from -1 to 1 along each axis, or the centres of as many pieces, moved by a matrix per image."""
    count, size = w.shape(0)[1], w.op("Cast", w[1], to=TensorProto.INT64)
    if not isinstance(count, int):
        raise Refused("AffineGrid of as many dimensions as are known at run time only")
    column = w.unsqueeze(w.op("Transpose", w[0], perm=[2, 0, 1]), *range(2, 2 + count))
    parts = [w.op("Gather", column, w.constant(k, np.int64), axis=0) for k in range(count + 1)]
    result, one = parts[-1], w.number(1)
    for axis in reversed(range(count)):
        extent = w.op("Gather", size, w.constant(2 + axis, np.int64), axis=0)
        numbers, steps = (w.op("Cast", value, to=w.type()) for value in (w.range(extent), extent))
        twice = w.op("Add", numbers, numbers)
        if w.attr("align_corners", 0):
            steps = w.op("Max", w.op("Sub", steps, one), one)
        else:
            twice = w.op("Add", twice, one)
        place = w.op("Sub", w.op("Div", twice, steps), one)
        shape = [1] * (count + 1)
        shape[axis] = -1
        result = w.op("Add", result, w.op("Mul", w.reshape(place, *shape), parts[count - 1 - axis]))
    w.op("Identity", result, result=0)


@rewrites("CenterCropPad")
def _center_crop_pad(w: Writer) -> None:
    rank, x = w.rank(0), w[0]
    zero, two = w.constant(0, np.int64), w.constant(2, np.int64)
    for number, axis in enumerate(w.attr("axes") or range(rank)):
        size = w.op("Gather", w.to(w[1], np.int64), w.constant(number, np.int64), axis=0)
        more = w.op("Sub", size, w.extent(x, axis % rank))
        half = w.op("Div", w.op("Abs", more), two)
        low = w.op("Where", w.op("Less", more, zero), w.op("Neg", half), half)
        x = filled(w, x, axis % rank, w.number(0), [low, w.op("Sub", more, low)])
    w.op("Identity", x, result=0)


@rewrites("Pad")
def _pad(w: Writer) -> None:
    """By as much as is computed, torch-mlir pads nothing, by less than nothing it takes nothing away, and it lacks a
    mode: one axis after the other."""
    mode = w.attr("mode", "constant")
    known = None if mode == "wrap" else w.data(1)
    if w.opset < 11 or (known is not None and (known >= 0).all()):
        w.op("Pad", *w.node.input, result=0, **w.attributes)
        return
    rank = w.rank(0)
    axes = [*range(rank)]
    if w.has(3):
        if w.data(3) is None:
            raise Refused("Pad of shapes known at run time only, along axes that are computed")
        axes = [int(axis) % rank for axis in w.data(3)]
    if known is not None:
        _pad_rest(w, axes, known)
        return
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


def _pad_rest(w: Writer, axes: Sequence[int], pads: np.ndarray[Any, Any]) -> None:
    """What is less than nothing is cut off before the rest is padded."""
    x = w[0]
    for axis, low, high in zip(axes, *pads.reshape(2, -1).tolist(), strict=True):
        if low < 0 or high < 0:
            x = w.part(x, axis, max(0, -low), min(0, high) or _END)
    rest = w.graph.constant(np.maximum(pads, 0))
    w.op("Pad", x, rest, *w.node.input[2:], result=0, **w.attributes)


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
