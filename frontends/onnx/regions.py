"""RoiAlign as a loop that takes one sample of every bin at a time: see `rewrites`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from devscope.frontends.onnx.images import Sampler, halves
from devscope.frontends.onnx.rewriter import Writer, rewrites


@rewrites("RoiAlign")
def _roi_align(w: Writer) -> None:
    """With a ratio of 0, a region has as many samples as its bins are large: there are steps for the largest."""
    ratio, is_max = w.attr("sampling_ratio", 0), w.attr("mode", "avg") == "max"
    half = w.opset >= 16 and w.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    bins = w.attr("output_height", 1), w.attr("output_width", 1)
    sampler = Sampler(w, w[0], w.to(w[2], np.int64), "border")
    ends = w.op("Sub", w.op("Mul", w[1], w.number(w.attr("spatial_scale", 1.0))), w.number(0.5 if half else 0))
    left, top, right, bottom = (w.part(w.unsqueeze(ends, 2), 1, k, k + 1) for k in range(4))
    begins: list[str] = []
    steps: list[str] = []
    counts: list[str] = []
    for first, last, count, shape in ((top, bottom, bins[0], (-1, 1)), (left, right, bins[1], (1, -1))):
        length = w.op("Sub", last, first)
        size = w.op("Div", length if half else w.op("Max", length, w.number(1)), w.number(count))
        begins.append(w.op("Add", first, w.op("Mul", size, w.number(np.arange(count).reshape(shape)))))
        counts.append(w.op("Ceil", size) if ratio <= 0 else w.number([[[ratio]]]))
        steps.append(w.op("Div", size, counts[-1]))
    flat = [w.op("Concat", w.reshape(count, -1), w.number([0]), axis=0) for count in counts]
    rows, columns = (w.to(w.op("ReduceMax", one, keepdims=0), np.int64) for one in flat)
    shape = w.vector(w.extent(w[1], 0), w.extent(w[0], 1), *bins)
    state = w.op("Expand", w.number(-np.inf if is_max else 0), shape)
    known = [size if isinstance(size, int) else None for size in (w.shape(1)[0], w.shape(0)[1], *bins)]
    body = _Body(w, known)
    at = [body.op("Cast", body.op(kind, body.trip, columns), to=w.type()) for kind in ("Div", "Mod")]
    places = [
        body.op("Add", begin, body.op("Mul", step, body.op("Add", one, body.number(0.5))))
        for begin, step, one in zip(begins, steps, at, strict=True)
    ]
    inside = [
        body.op("Min", body.op("Max", place, body.number(0)), body.op("Sub", size, body.number(1)))
        for place, size in zip(places, sampler.sizes, strict=True)
    ]
    terms = sampler.within(body).weighed(inside, halves)
    found = body.op("Max" if is_max else "Sum", *terms)
    for place, size in zip(places, sampler.sizes, strict=True):
        outside = body.op("Or", body.op("Less", place, body.number(-1)), body.op("Greater", place, size))
        found = body.op("Where", body.unsqueeze(outside, 1), body.number(0), found)
    found = body.op("Max" if is_max else "Add", body.before, found)
    for one, count in zip(at, counts, strict=True):
        if ratio <= 0:
            found = body.op("Where", body.unsqueeze(body.op("Less", one, count), 1), found, body.before)
    trips, going = w.op("Mul", rows, columns), w.constant(True, np.bool_)
    state = w.op("Loop", trips, going, state, body=body.graph_of(found))
    w.graph.declare(state, w.type(), known)
    if is_max:  # of no samples
        w.op("Where", w.op("IsInf", state), w.number(0), state, result=0)
    else:
        count = w.op("Max", w.op("Mul", *counts), w.number(1))
        w.op("Div", state, w.unsqueeze(count, 1), result=0)


class _Body(Writer):
    """Of a Loop that carries one value."""

    def __init__(self, outer: Writer, shape: Sequence[int | None]) -> None:
        node = onnx.NodeProto()
        node.CopyFrom(outer.node)
        node.name += ".step"
        super().__init__(outer.graph, node, outer.opset)
        self.trip, self._going, self.before = (f"{node.name}.{name}" for name in ("trip", "going", "before"))
        self._shape = shape

    def graph_of(self, after: str) -> onnx.GraphProto:
        goes_on = self.op("Identity", self._going)
        make, kind = helper.make_tensor_value_info, (self.type(), self._shape)
        heads = [make(self.trip, TensorProto.INT64, []), make(self._going, TensorProto.BOOL, [])]
        results = [make(goes_on, TensorProto.BOOL, []), make(after, *kind)]
        return helper.make_graph(self.nodes, self.node.name, [*heads, make(self.before, *kind)], results)
