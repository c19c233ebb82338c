"""Gathers and scatters at places of several coordinates, of sizes known at run time only."""

from __future__ import annotations

import numpy as np

from devscope.frontends.onnx.rewriter import Writer, rewrites


@rewrites("GatherND")
def _gather_many(w: Writer) -> None:
    """Of several dimensions of any size, torch-mlir takes some to be 1: rows of what is left, at one place each."""
    count, rank = (w.graph.shapes.get(w[1]) or [None])[-1], w.rank(0)
    if w.attr("batch_dims", 0) or not isinstance(count, int):
        w.op("GatherND", *w.node.input, result=0, **w.attributes)
        return
    extents = [w.extent(w[0], axis) for axis in range(rank)]
    place = total = ""
    for axis, extent in enumerate(extents[:count]):
        given = w.to(w.op("Gather", w[1], w.constant(axis, np.int64), axis=-1), np.int64)
        inside = w.op("Where", w.op("Less", given, w.constant(0, np.int64)), w.op("Add", given, extent), given)
        place = w.op("Add", w.op("Mul", place, extent), inside) if place else inside
        total = w.op("Mul", total, extent) if total else extent
    rows = w.shaped(w[0], total, *extents[count:]) if count > 1 else w[0]
    w.op("Gather", rows, place, axis=0, result=0)


@rewrites("ScatterElements")
def _scatter(w: Writer) -> None:
    """torch-mlir has no largest and no smallest element of one place, but of several coordinates."""
    if w.attr("reduction", "none") not in ("max", "min"):
        w.op("ScatterElements", *w.node.input, result=0, **w.attributes)
        return
    rank, shape = w.rank(0), w.op("Shape", w[1])
    coordinates: list[str] = []
    for axis in range(rank):
        place = w.to(w[1], np.int64)
        if axis != w.attr("axis", 0) % rank:
            numbers = w.range(w.extent(w[1], axis))
            place = w.op(
                "Expand", w.unsqueeze(numbers, *range(1, rank - axis)) if axis < rank - 1 else numbers, shape
            )
        coordinates.append(w.unsqueeze(w.reshape(place, -1), 1))
    places = w.op("Concat", *coordinates, axis=1)
    w.op("ScatterND", w[0], places, w.reshape(w[2], -1), reduction=w.attr("reduction"), result=0)
