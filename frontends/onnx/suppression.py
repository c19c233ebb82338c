"""NonMaxSuppression as a loop that selects a box of each batch and class at a time: see `rewrites`."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from devscope.frontends.onnx.rewriter import Writer, rewrites

_GONE, _LEFT, _SELECTED = 0, 1, 2


@rewrites("NonMaxSuppression")
def _non_max_suppression(w: Writer) -> None:
    """Boxes in the order of their scores, each left, selected or gone: torch-mlir's own stops for some scores.

    A step takes the first that is left of each batch and class, and what overlaps it is gone. No more memory is
    needed than for a few numbers of each score.
    """
    known = w.graph.shapes.get(w[1], [None] * 3)
    shape = [extent if isinstance(extent, int) else None for extent in known]
    count, one = w.extent(w[1], 2), w.constant([1], np.int64)
    numbers = w.op("Range", w.constant(0, np.int64), count, w.constant(1, np.int64))
    # A constant, where it is known: torch-mlir has to know the shape of what the loop carries.
    most = w.op("Reshape", count, one) if shape[2] is None else w.constant([shape[2]], np.int64)
    scores, order = w.several("TopK", w[1], most, count=2, axis=-1)
    # Without a threshold all take part, also with scores that are not a number.
    left = w.op("Greater", scores, w[4]) if w.has(4) else w.op("Equal", order, order)
    left = w.op("Cast", left, to=TensorProto.INT64)
    corners = [_sorted(w, corner, order) for corner in _corners(w)]
    wanted = w.op("Reshape", w[2], w.constant([], np.int64)) if w.has(2) else w.constant(0, np.int64)
    candidates = w.op("ReduceMax", w.op("ReduceSum", left, w.constant([-1], np.int64), keepdims=0), keepdims=0)
    steps = w.op("Min", wanted, candidates)
    state = w.op("Loop", steps, w.constant(True, np.bool_), left, body=_step(w, corners, numbers, shape))
    # ONNX infers no shapes of what loops carry.
    w.graph.model.graph.value_info.append(helper.make_tensor_value_info(state, TensorProto.INT64, shape))
    selected = w.op("Equal", state, w.constant(_SELECTED, np.int64))
    found = w.op("NonZero", selected)  # in order of batches, classes and scores
    place = batch, kind, _ = [w.op("Gather", found, w.constant(axis, np.int64), axis=0) for axis in range(3)]
    flat = batch  # torch-mlir has no GatherND of as many places as are known at run time only
    for axis in (1, 2):
        flat = w.op("Add", w.op("Mul", flat, w.extent(w[1], axis)), place[axis])
    box = w.op("Gather", w.op("Reshape", order, w.constant([-1], np.int64)), flat, axis=0)
    columns = [w.op("Unsqueeze", part, one) for part in (batch, kind, box)]
    w.op("Concat", *columns, axis=1, result=0)


def _corners(w: Writer) -> list[str]:
    """The least x and y of boxes, and the greatest ones: batch x 1 x boxes."""
    parts = [w.op("Gather", w[0], w.constant(number, np.int64), axis=2) for number in range(4)]
    parts = [w.op("Unsqueeze", part, w.constant([1], np.int64)) for part in parts]
    if w.attr("center_point_box", 0):
        halves = [w.op("Div", size, w.constant(2)) for size in parts[2:]]
        return [w.op(kind, at, half) for kind in ("Sub", "Add") for at, half in zip(parts, halves, strict=False)]
    return [w.op(kind, *pair) for kind in ("Min", "Max") for pair in (parts[1::2], parts[::2])]


def _sorted(w: Writer, values: str, order: str) -> str:
    wide = w.op("Expand", values, w.op("Shape", order))
    return w.op("GatherElements", wide, order, axis=2)


def _step(outer: Writer, corners: list[str], numbers: str, shape: list[int | None]) -> onnx.GraphProto:
    """From what boxes are (i64, batch x class x box) to what they are after one more is selected."""
    node = onnx.NodeProto()
    node.CopyFrom(outer.node)
    node.name += ".step"
    w = Writer(outer.graph, node, outer.opset)
    number, goes_on, state = (f"{node.name}.{name}" for name in ("number", "condition", "state"))
    gone, one, selected = (w.constant(value, np.int64) for value in (_GONE, _LEFT, _SELECTED))
    left = w.op("Equal", state, one)
    first = w.op("ArgMax", w.op("Cast", left, to=TensorProto.INT64), axis=2, keepdims=1)
    taken = w.op("And", left, w.op("Equal", numbers, first))
    mine = [w.op("GatherElements", corner, first, axis=2) for corner in corners]
    low = [w.op("Max", *pair) for pair in zip(corners[:2], mine[:2], strict=True)]
    high = [w.op("Min", *pair) for pair in zip(corners[2:], mine[2:], strict=True)]
    common, its, others = (_area(w, *box) for box in ([*low, *high], mine, corners))
    union = w.op("Sub", w.op("Add", others, its), common)
    threshold = outer[3] if outer.has(3) else w.constant(0)
    overlaps = w.op("Greater", w.op("Div", common, union), threshold)
    state_after = w.op("Where", taken, selected, w.op("Where", w.op("And", left, overlaps), gone, state))
    condition_after = w.op("Identity", goes_on)
    return helper.make_graph(
        w.nodes,
        node.name,
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(goes_on, TensorProto.BOOL, []),
            helper.make_tensor_value_info(state, TensorProto.INT64, shape),
        ],
        [
            helper.make_tensor_value_info(condition_after, TensorProto.BOOL, []),
            helper.make_tensor_value_info(state_after, TensorProto.INT64, shape),
        ],
    )


def _area(w: Writer, *box: str) -> str:
    """0 where a side is not above 0."""
    sides = [w.op("Max", w.op("Sub", box[axis + 2], box[axis]), w.constant(0)) for axis in (0, 1)]
    return w.op("Mul", *sides)
