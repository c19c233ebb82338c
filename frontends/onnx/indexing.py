"""Operators that read and write at computed places, and that sort."""

from __future__ import annotations

import math

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.shapes import take_along
from devscope.frontends.onnx.types import is_float

_COMBINE = {"none": None, "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _inside(b: Builder, places: Value, extent: int) -> Value:
    """Places of type i64, counted from the end where they are negative."""
    places = b.convert(places, "i64")
    return b.select(b.compare("LT", places, 0), b.binary("add", places, extent), places)


@operator("Gather")
def gather(n: Node) -> Value:
    axis = n.attr("axis", 0) % n[0].rank
    return n.b.take(n[0], _inside(n.b, n[1], n[0].shape[axis]), axis)


@operator("GatherElements")
def gather_elements(n: Node) -> Value:
    b, x, axis = n.b, n[0], n.attr("axis", 0) % n[0].rank
    return take_along(b, x, _inside(b, n[1], x.shape[axis]), axis)


def _coordinates(b: Builder, places: Value, extents: tuple[int, ...]) -> Value:
    """Coordinates along the last dimension, none negative."""
    places = b.convert(places, "i64")
    limits = b.broadcast(b.constant(np.array(extents, np.int64), "i64"), places.shape)
    return b.select(b.compare("LT", places, 0), b.binary("add", places, limits), places)


@operator("GatherND")
def gather_nd(n: Node) -> Value:
    b, x, batch = n.b, n[0], n.attr("batch_dims", 0)
    depth = n[1].shape[-1]
    return b.gather_points(x, _coordinates(b, n[1], x.shape[batch : batch + depth]), batch)


@operator("ScatterElements", "Scatter")
def scatter_elements(n: Node) -> Value:
    b, x, axis = n.b, n[0], n.attr("axis", 0) % n[0].rank
    shape = [*n[1].shape, 1]
    places = b.reshape(_inside(b, n[1], x.shape[axis]), shape)
    parts = [places if a == axis else b.iota(a, shape) for a in range(x.rank)]
    return b.scatter_points(x, b.concatenate(parts, x.rank), n[2], _COMBINE[n.attr("reduction", "none")])


@operator("ScatterND")
def scatter_nd(n: Node) -> Value:
    b, x = n.b, n[0]
    places = _coordinates(b, n[1], x.shape[: n[1].shape[-1]])
    return b.scatter_points(x, places, n[2], _COMBINE[n.attr("reduction", "none")])


@operator("TensorScatter")
def tensor_scatter(n: Node) -> Value:
    """Writes a piece of a sequence behind what is there, in a cache of keys or values."""
    b, cache, update, axis = n.b, n[0], n[1], n.attr("axis", -2) % n[0].rank
    first = b.convert(n[2], "i64") if n.has(2) else b.full(0, "i64", [cache.shape[0]])
    place = b.binary("add", b.broadcast_in_dim(first, update.shape, [0]), b.iota(axis, update.shape))
    if n.attr("mode", "linear") == "circular":
        place = b.binary("remainder", place, cache.shape[axis])
    shape = [*update.shape, 1]
    parts = [b.reshape(place, shape) if a == axis else b.iota(a, shape) for a in range(cache.rank)]
    return b.scatter_points(cache, b.concatenate(parts, cache.rank), update, None)


@operator("OneHot")
def one_hot(n: Node) -> Value:
    b, places = n.b, n[0]
    axis = n.attr("axis", -1) % (places.rank + 1)
    known = n.known(1)
    depth = n.declared_shape()[axis] if known is None else int(np.asarray(known).reshape(-1)[0])
    shape = [*places.shape[:axis], depth, *places.shape[axis:]]
    wide = places if is_float(places.element) else b.convert(places, "i64")
    wide = b.select(b.compare("LT", wide, 0), b.binary("add", wide, depth), wide)
    wide = b.broadcast_in_dim(wide, shape, [a for a in range(len(shape)) if a != axis])
    on = b.compare("EQ", wide, b.iota(axis, shape, wide.element))
    return b.select(on, b.at(n[2], 0, 1), b.at(n[2], 0, 0))


@operator("TopK")
def top_k(n: Node) -> list[Value]:
    b, x, axis = n.b, n[0], n.attr("axis", -1) % n[0].rank
    if n.opset < 10:
        count = n.attr("k")
    else:
        count = n.declared_shape()[axis] if n.known(1) is None else n.integers(1, "k")[0]
    places = b.iota(axis, x.shape)
    direction = "GT" if n.attr("largest", 1) else "LT"
    values, places = b.sort([x, places], axis, direction)
    return [b.part(values, axis, 0, count), b.part(places, axis, 0, count)]


@operator("ArgMax", "ArgMin")
def arg_max(n: Node) -> Value:
    b, x, axis = n.b, n[0], n.attr("axis", 0) % n[0].rank
    last = n.attr("select_last_index", 0)
    name = "maximum" if n.proto.op_type == "ArgMax" else "minimum"
    best = b.reduce(name, x, [axis], keep=True)
    is_best = b.compare("EQ", x, best)
    if is_float(x.element):
        is_best = b.binary("or", is_best, b.compare("NE", x, x))
    places = b.iota(axis, x.shape)
    found = b.select(is_best, places, b.full(-1 if last else x.shape[axis], "i64", x.shape))
    return b.reduce("maximum" if last else "minimum", found, [axis], keep=bool(n.attr("keepdims", 1)))


@operator("MaxUnpool")
def max_unpool(n: Node) -> Value:
    b, x = n.b, n[0]
    kernel = n.attr("kernel_shape")
    strides, pads = n.attr("strides") or [1] * len(kernel), n.attr("pads") or [0] * 2 * len(kernel)
    spatial = [
        (extent - 1) * s - lo - hi + k
        for extent, s, k, lo, hi in zip(
            x.shape[2:], strides, kernel, pads[: len(kernel)], pads[len(kernel) :], strict=True
        )
    ]
    shape = [*x.shape[:2], *spatial]
    flat = b.full(0, x.element, [math.prod(shape)])
    points = b.reshape(b.convert(n[1], "i64"), [x.size, 1])
    made = b.reshape(b.scatter_points(flat, points, b.reshape(x, [x.size]), None), shape)
    if not n.has(2):
        return made
    asked = n.declared_shape()
    return b.pad(made, 0, [0] * made.rank, [to - have for to, have in zip(asked, shape, strict=True)])
