"""Operators that give as many elements as data decides, in those of torch-mlir that do: NonZero, and what it selects."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.rewriter import Writer, rewrites


def _flat(w: Writer, x: str) -> str:
    return w.op("Reshape", x, w.constant([-1], np.int64))


def _places(w: Writer, condition: str) -> str:
    """Where a vector is true."""
    return _flat(w, w.op("NonZero", condition))


@rewrites("Compress")
def _compress(w: Writer) -> None:
    axis = w.attr("axis")
    x = _flat(w, w[0]) if axis is None else w[0]
    found = w.op("Gather", x, _places(w, w[1]), axis=axis or 0)
    declared = w.graph.shapes.get(w.node.output[0])
    if declared and all(isinstance(size, int) for size in declared):  # torch-mlir wants the same from Gather
        w.op("Reshape", found, w.constant(declared, np.int64), result=0)
    else:
        w.op("Identity", found, result=0)


@rewrites("Unique")
def _unique(w: Writer) -> None:
    """Of all elements: they are compared with each other where more than the values is wanted, or their order kept."""
    if "axis" in w.attributes:
        _unique_parts(w)
        return
    x = _flat(w, w[0])
    count = w.op("Shape", x)
    if w.attr("sorted", 1):
        x_sorted, _ = w.several("TopK", x, count, count=2, axis=0, largest=0, sorted=1)
        last = w.op("Slice", x_sorted, w.constant([-1], np.int64), w.constant([1 << 62], np.int64))
        before = w.op("Slice", x_sorted, w.constant([0], np.int64), w.constant([-1], np.int64))
        # The first is compared with the last, which is another one unless all are equal.
        differs = w.op("Not", w.op("Equal", x_sorted, w.op("Concat", last, before, axis=0)))
        is_first = w.op("Equal", w.range(w.squeeze(count, 0)), w.constant(0, np.int64))
        found = w.op("Gather", x_sorted, _places(w, w.op("Or", is_first, differs)))
    else:
        found = w.op("Gather", x, _places(w, _is_first(w, x, count)))
    w.op("Identity", found, result=0)
    if any(map(w.wants, (1, 2, 3))):
        same = w.op("Equal", w.unsqueeze(found, 1), w.unsqueeze(x, 0))
        numbers = w.op("Cast", same, to=TensorProto.INT64)
        if w.wants(1):
            w.op("ArgMax", numbers, axis=1, keepdims=0, result=1)
        if w.wants(2):
            w.op("ArgMax", numbers, axis=0, keepdims=0, result=2)
        if w.wants(3):
            w.op("Identity", w.sum(numbers, [1]), result=3)


def _is_first(w: Writer, x: str, count: str) -> str:
    """Whether no element before one is equal to it."""
    same = w.op("Equal", w.unsqueeze(x, 1), w.unsqueeze(x, 0))
    first = w.op("ArgMax", w.op("Cast", same, to=TensorProto.INT64), axis=1, keepdims=0)
    return w.op("Equal", first, w.range(w.squeeze(count, 0)))


def _unique_parts(w: Writer) -> None:
    """Along an axis: parts are compared with each other, those that are sorted by their first elements that differ."""
    axis, rank = w.attr("axis"), w.rank(0)
    order = [axis % rank, *(dim for dim in range(rank) if dim != axis % rank)]
    rows = w.op("Flatten", w.op("Transpose", w[0], perm=order), axis=1)
    one, other = w.unsqueeze(rows, 1), w.unsqueeze(rows, 0)
    differs = w.op("Cast", w.op("Not", w.op("Equal", one, other)), to=TensorProto.INT64)
    same = w.op("Equal", w.sum(differs, [2]), w.constant(0, np.int64))
    same_numbers = w.op("Cast", same, to=TensorProto.INT64)
    first = w.op("ArgMax", same_numbers, axis=1, keepdims=0)
    is_first = w.op("Equal", first, w.range(w.extent(rows, 0)))
    places = _places(w, is_first)
    if w.attr("sorted", 1):
        # How many different parts are less than each.
        less = w.op("Cast", w.op("Less", other, one), to=TensorProto.INT64)
        is_less = w.op("GatherElements", less, w.op("ArgMax", differs, axis=2, keepdims=1), axis=2)
        counted = w.unsqueeze(w.op("Cast", is_first, to=TensorProto.INT64), 0)
        number = w.sum(w.op("Mul", w.squeeze(is_less, 2), counted), [1])
        order_then = w.op("Gather", number, places)
        _, at = w.several("TopK", order_then, w.op("Shape", places), count=2, axis=0, largest=0, sorted=1)
        places = w.op("Gather", places, at)
    else:
        before = w.op("CumSum", w.op("Cast", is_first, to=TensorProto.INT64), w.constant(0, np.int64))
        number = w.op("Sub", w.op("Gather", before, first), w.constant(1, np.int64))
    w.op("Gather", w[0], places, axis=axis, result=0)
    if w.wants(1):
        w.op("Identity", places, result=1)
    if w.wants(2):
        w.op("Identity", number, result=2)
    if w.wants(3):
        w.op("Gather", w.sum(same_numbers, [1]), places, result=3)
