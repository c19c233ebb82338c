"""Operators that move elements: reshapes, slices, pads, concatenations.

An operand that says a shape may be computed at run time where the model declares the shape of the result; what it
has to be is demanded as the program runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.types import UnknownShape, common_shape


@operator("Reshape")
def reshape(n: Node) -> Value:
    x = n[0]
    asked = n.optional_integers("shape", 1) if "shape" in n.attributes or n.known(1) is not None else None
    if asked is None:
        return n.b.reshape(x, n.declared_shape())
    shape = [
        x.shape[a] if extent == 0 and not n.attr("allowzero", 0) else extent for a, extent in enumerate(asked)
    ]
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = x.size // rest if rest else 0
    return n.b.reshape(x, shape)


@operator("Flatten")
def flatten(n: Node) -> Value:
    axis, shape = n.attr("axis", 1), n[0].shape
    axis = axis + len(shape) if axis < 0 else axis
    return n.b.reshape(n[0], [math.prod(shape[:axis]), math.prod(shape[axis:])])


@operator("Squeeze")
def squeeze(n: Node) -> Value:
    x = n[0]
    if n.has(1) and n.known(1) is None:
        return n.b.reshape(x, n.declared_shape())
    axes = n.optional_integers("axes", 1)
    gone = [a for a, e in enumerate(x.shape) if e == 1] if axes is None else [axis % x.rank for axis in axes]
    return n.b.reshape(x, [extent for axis, extent in enumerate(x.shape) if axis not in gone])


@operator("Unsqueeze")
def unsqueeze(n: Node) -> Value:
    x = n[0]
    if n.has(1) and n.known(1) is None:
        return n.b.reshape(x, n.declared_shape())
    axes = n.optional_integers("axes", 1) or []
    rank = x.rank + len(axes)
    added, rest = {axis % rank for axis in axes}, iter(x.shape)
    return n.b.reshape(x, [1 if axis in added else next(rest) for axis in range(rank)])


@operator("Transpose")
def transpose(n: Node) -> Value:
    return n.b.transpose(n[0], n.attr("perm") or [*reversed(range(n[0].rank))])


@operator("Expand")
def expand(n: Node) -> Value:
    asked = n.known(1)
    shape = n.declared_shape() if asked is None else common_shape(n[0].shape, tuple(int(e) for e in asked))
    return n.b.broadcast(n[0], shape)


@operator("Tile")
def tile(n: Node) -> Value:
    b, x = n.b, n[0]
    if n.known(1) is None:
        repeats = [to // max(1, extent) for to, extent in zip(n.declared_shape(), x.shape, strict=True)]
    else:
        repeats = n.integers(1, "repeats")
    between = [part for pair in zip(repeats, x.shape, strict=True) for part in pair]
    wide = b.broadcast_in_dim(x, between, [*range(1, 2 * x.rank, 2)])
    return b.reshape(wide, [r * e for r, e in zip(repeats, x.shape, strict=True)])


@operator("Concat")
def concat(n: Node) -> Value:
    return n.b.concatenate(n.inputs, n.attr("axis", 1) % n[0].rank)


@operator("Split")
def split(n: Node) -> list[Value]:
    b, x, axis = n.b, n[0], n.attr("axis", 0) % n[0].rank
    count = len(n.proto.output)
    if n.has(1) and n.known(1) is None:
        sizes = [n.declared_shape(number)[axis] for number in range(count)]
    else:
        piece = -(-x.shape[axis] // count)
        even = [min(piece, x.shape[axis] - piece * number) for number in range(count)]
        sizes = n.optional_integers("split", 1) or even
    ends = np.cumsum([0, *sizes]).tolist()
    return [b.part(x, axis, start, end) for start, end in itertools.pairwise(ends)]


@operator("Slice")
def slice_(n: Node) -> Value:
    b, x = n.b, n[0]
    if n.opset < 10:
        starts, ends = list(n.attr("starts")), list(n.attr("ends"))
        axes, steps = list(n.attr("axes") or range(len(starts))), [1] * len(starts)
    elif any(n.has(number) and n.known(number) is None for number in (1, 2, 3, 4)):
        return _slice_at_run_time(n)
    else:
        starts, ends = n.integers(1, "starts"), n.integers(2, "ends")
        axes = n.integers(3, "axes") if n.has(3) else [*range(len(starts))]
        steps = n.integers(4, "steps") if n.has(4) else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis %= x.rank
        if step < 0 and start < 0:  # backwards, the first is what begins before it
            start = max(start, -x.shape[axis])
        found = range(x.shape[axis])[slice(start, end, step)]
        if len(found) == 0:
            x = b.part(x, axis, 0, 0)
        elif step > 0:
            x = b.part(x, axis, found[0], found[-1] + 1, step)
        else:
            x = b.part(b.reverse(x, [axis]), axis, x.shape[axis] - 1 - found[0], x.shape[axis] - found[-1], -step)
    return x


def per_axis(n: Node, values: Value, axes: Value | None, rank: int, absent: int) -> list[Value]:
    """What ``values`` say of each axis: scalars, ``absent`` where ``axes`` lack it."""
    b = n.b
    values = b.convert(values, "i64")
    if axes is None:
        return [b.at(values, 0, k) if k < values.shape[0] else b.scalar(absent, "i64") for k in range(rank)]
    axes = b.convert(axes, "i64")
    axes = b.select(b.compare("LT", axes, 0), b.binary("add", axes, rank), axes)
    found: list[Value] = []
    for axis in range(rank):
        result = b.scalar(absent, "i64")
        for k in range(values.shape[0]):
            result = b.select(b.compare("EQ", b.at(axes, 0, k), axis), b.at(values, 0, k), result)
        found.append(result)
    return found


def _slice_at_run_time(n: Node) -> Value:
    """Every axis is gathered at its start plus multiples of its step; how many the declared shape says."""
    b, x, shape = n.b, n[0], n.declared_shape()
    axes = n.get(3)
    starts = per_axis(n, n[1], axes, x.rank, 0)
    steps = per_axis(n, n[4], axes, x.rank, 1) if n.has(4) else [b.scalar(1, "i64")] * x.rank
    for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
        extent = x.shape[axis]
        if shape[axis] == 0:
            x = b.part(x, axis, 0, 0)
            continue
        start = b.select(b.compare("LT", start, 0), b.binary("add", start, extent), start)
        last = b.select(b.compare("LT", step, 0), b.scalar(extent - 1, "i64"), b.scalar(extent, "i64"))
        start = b.binary("minimum", b.binary("maximum", start, 0), last)
        x = b.take(x, b.binary("add", start, b.binary("multiply", b.iota(0, [shape[axis]]), step)), axis)
    return x


@operator("Pad")
def pad(n: Node) -> Value:
    b, x, mode = n.b, n[0], n.attr("mode", "constant")
    axes = n.integers(3, "axes") if n.has(3) and n.known(3) is not None else None
    filler = b.reshape(n[2], []) if n.has(2) else b.scalar(n.attr("value", 0.0), x.element)
    given = n.attributes.get("pads", n.attributes.get("paddings"))
    if given is None and (n.known(1) is None or (n.has(3) and axes is None)):
        return _pad_at_run_time(n, filler, mode)
    pads = [int(p) for p in given] if given is not None else n.integers(1, "pads")
    low, high = [0] * x.rank, [0] * x.rank
    axes = axes or [*range(x.rank)]
    for number, axis in enumerate(axes):
        low[axis % x.rank], high[axis % x.rank] = pads[number], pads[number + len(axes)]
    if mode == "constant":
        return b.pad(x, filler, low, high)
    for axis in range(x.rank):
        extent = x.shape[axis]
        if low[axis] or high[axis]:
            x = b.take(
                x, b.constant(_places(mode, np.arange(-low[axis], extent + high[axis]), extent), "i64"), axis
            )
    return x


def _places(mode: str, places: np.ndarray, extent: int) -> np.ndarray:
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    period = max(1, 2 * (extent - 1))
    places = np.abs(places) % period
    return np.where(places >= extent, period - places, places)


def _pad_at_run_time(n: Node, filler: Value, mode: str) -> Value:
    b, x, shape = n.b, n[0], n.declared_shape()
    count = n[1].shape[0] // 2
    lows = per_axis(n, b.part(n[1], 0, 0, count), n.get(3), x.rank, 0)
    for axis, low in enumerate(lows):
        extent = x.shape[axis]
        places = b.binary("subtract", b.iota(0, [shape[axis]]), low)
        inside = b.binary("and", b.compare("GE", places, 0), b.compare("LT", places, extent))
        if mode == "wrap":
            places = b.binary("remainder", b.binary("add", b.binary("remainder", places, extent), extent), extent)
        elif mode == "reflect":
            period = max(1, 2 * (extent - 1))
            places = b.binary("remainder", b.unary("abs", places), period)
            behind = b.compare("GE", places, extent)
            places = b.select(behind, b.binary("subtract", b.full(period, "i64", places.shape), places), places)
        places = b.binary("minimum", b.binary("maximum", places, 0), max(0, extent - 1))
        if extent == 0:
            x = b.broadcast(filler, [*x.shape[:axis], shape[axis], *x.shape[axis + 1 :]])
            continue
        x = b.take(x, places, axis)
        if mode == "constant":
            mask = b.broadcast_in_dim(inside, x.shape, [axis])
            x = b.select(mask, x, filler)
    return x


@operator("DepthToSpace")
def depth_to_space(n: Node) -> Value:
    b, (count, channels, height, width), size = n.b, n[0].shape, n.attr("blocksize")
    rest = channels // size**2
    if n.attr("mode", "DCR") == "DCR":
        parts = b.transpose(b.reshape(n[0], [count, size, size, rest, height, width]), [0, 3, 4, 1, 5, 2])
    else:
        parts = b.transpose(b.reshape(n[0], [count, rest, size, size, height, width]), [0, 1, 4, 2, 5, 3])
    return b.reshape(parts, [count, rest, height * size, width * size])


@operator("SpaceToDepth")
def space_to_depth(n: Node) -> Value:
    b, (count, channels, height, width), size = n.b, n[0].shape, n.attr("blocksize")
    shape = [count, channels, height // size, size, width // size, size]
    order = [0, 1, 3, 5, 2, 4] if n.attr("mode", "DCR") == "CRD" else [0, 3, 5, 1, 2, 4]
    parts = b.transpose(b.reshape(n[0], shape), order)
    return b.reshape(parts, [count, channels * size**2, height // size, width // size])


@operator("ConstantOfShape")
def constant_of_shape(n: Node) -> Value:
    from devscope.frontends.onnx.graph import array_of, element_of_array

    shape = n.declared_shape() if n.known(0) is None else n.integers(0, "shape")
    value = array_of(n.attributes["value"]) if "value" in n.attributes else np.zeros(1, np.float32)
    return n.b.full(value.reshape(()), element_of_array(value), shape)


@operator("EyeLike")
def eye_like(n: Node) -> Value:
    from devscope.frontends.onnx.types import element_of

    shape = n[0].shape
    element = element_of(n.attr("dtype")) if "dtype" in n.attributes else n[0].element
    return n.b.constant(np.eye(*shape, k=n.attr("k", 0)), element)


@operator("Range")
def range_(n: Node) -> Value:
    b, (count,) = n.b, n.declared_shape()
    start, step = b.reshape(n[0], []), b.reshape(n[2], [])
    return b.binary("add", start, b.binary("multiply", b.iota(0, [count], start.element), step))


@operator("Trilu")
def trilu(n: Node) -> Value:
    b, x = n.b, n[0]
    if x.size == 0:
        return x
    rows, columns = b.iota(x.rank - 2, x.shape), b.iota(x.rank - 1, x.shape)
    diagonal = b.reshape(b.convert(n[1], "i64"), []) if n.has(1) else b.scalar(0, "i64")
    limit = b.binary("add", rows, diagonal)
    return b.select(b.compare("GE" if n.attr("upper", 1) else "LE", columns, limit), x, 0)


@operator("ReverseSequence")
def reverse_sequence(n: Node) -> Value:
    b, x, batch, time = n.b, n[0], n.attr("batch_axis", 1), n.attr("time_axis", 0)
    lengths = b.broadcast_in_dim(b.convert(n[1], "i64"), x.shape, [batch])
    place = b.iota(time, x.shape)
    turned = b.binary("subtract", b.binary("subtract", lengths, 1), place)
    place = b.select(b.compare("LT", place, lengths), turned, place)
    return take_along(b, x, place, time)


def take_along(b: Builder, x: Value, places: Value, axis: int) -> Value:
    """``numpy.take_along_axis``, of places that are inside."""
    shape = [*places.shape, 1]
    coordinates = [b.iota(a, shape) if a != axis else b.reshape(places, shape) for a in range(x.rank)]
    return b.gather_points(x, b.concatenate(coordinates, x.rank))


@operator("CenterCropPad")
def center_crop_pad(n: Node) -> Value:
    b, x = n.b, n[0]
    axes: Sequence[int] = n.attr("axes") or [*range(x.rank)]
    shape = n.declared_shape()
    for axis in (axis % x.rank for axis in axes):
        extent, wanted = x.shape[axis], shape[axis]
        if wanted < extent:
            start = (extent - wanted) // 2
            x = b.part(x, axis, start, start + wanted)
        elif wanted > extent:
            low, high = [0] * x.rank, [0] * x.rank
            low[axis] = (wanted - extent) // 2
            high[axis] = wanted - extent - low[axis]
            x = b.pad(x, 0, low, high)
    return x


@operator("AffineGrid")
def affine_grid(n: Node) -> Value:
    """Places from -1 to 1 along each axis, or the centres of as many pieces, moved by a matrix per image."""
    from devscope.frontends.onnx.contractions import matmul_of

    b, theta = n.b, n[0]
    spatial = n.declared_shape()[1:-1]
    columns: list[Value] = []
    for axis in reversed(range(len(spatial))):
        extent = spatial[axis]
        places = (
            np.linspace(-1, 1, extent) if n.attr("align_corners", 0) else (2 * np.arange(extent) + 1) / extent - 1
        )
        wide = b.broadcast_in_dim(b.constant(places, theta.element), spatial, [axis])
        columns.append(b.reshape(wide, [math.prod(spatial), 1]))
    columns.append(b.full(1, theta.element, [math.prod(spatial), 1]))
    points = b.concatenate(columns, 1)
    return b.reshape(matmul_of(b, points, b.transpose(theta, [0, 2, 1])), n.declared_shape())


@operator("Compress", "NonZero", "NonMaxSuppression", "Unique")
def depends_on_data(n: Node) -> Value:
    raise UnknownShape(f"{n.proto.op_type}, whose result's shape depends on the data")
