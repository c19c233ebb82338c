"""Scan over sizes known at run time only, as a Loop that takes a part of each input and gives rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused


@rewrites("Scan")
def _scan(w: Writer) -> None:
    if w.opset < 9:
        raise Refused("Scan of a version before 9, of shapes known at run time only")
    body, count = w.attributes["body"], w.attr("num_scan_inputs")
    first, inputs = list(w.node.input[:-count]), list(w.node.input[-count:])
    axes = [axis % w.rank(len(first) + n) for n, axis in enumerate(w.attr("scan_input_axes") or [0] * count)]
    trips = w.extent(inputs[0], axes[0])
    name, backwards = f"{w.node.name}.trip", w.attr("scan_input_directions") or [0] * count
    nodes = [_constant(f"{name}.one", 1), helper.make_node("Sub", [trips, f"{name}.one"], [f"{name}.last"])]
    nodes.append(helper.make_node("Sub", [f"{name}.last", name], [f"{name}.back"]))
    heads = list(body.input)
    for one, given, axis, back in zip(heads[len(first) :], inputs, axes, backwards, strict=True):
        place = f"{name}.back" if back else name
        nodes.append(helper.make_node("Gather", [given, place], [one.name], axis=axis))
    going, goes_on = f"{name}.going", f"{name}.goes_on"
    nodes.append(helper.make_node("Identity", [going], [goes_on]))
    make = helper.make_tensor_value_info
    flags = [make(one, TensorProto.BOOL, []) for one in (going, goes_on)]
    trip = make(name, TensorProto.INT64, [])
    # A state keeps its shape, whose sizes the body may have other names for.
    states = [
        make(one.name, one.type.tensor_type.elem_type or w.graph.type_of(of), w.graph.shapes[of])
        if of in w.graph.shapes
        else one
        for one, of in zip(heads, first, strict=False)
    ]
    graph = helper.make_graph(
        [*nodes, *body.node],
        body.name,
        [trip, flags[0], *states],
        [flags[1], *body.output],
        [*body.initializer],
    )
    made = w.several("Loop", trips, w.constant(True, np.bool_), *first, count=len(body.output), body=graph)
    scanned = len(body.output) - len(first)
    out_axes = w.attr("scan_output_axes") or [0] * scanned
    out_backwards = w.attr("scan_output_directions") or [0] * scanned
    for number, value in enumerate(made):
        if not w.wants(number):
            continue
        if number >= len(first):
            declared = body.output[number].type.tensor_type
            value = _in_order(
                w, value, declared, out_axes[number - len(first)], out_backwards[number - len(first)]
            )
        w.op("Identity", value, result=number)


def _in_order(w: Writer, rows: str, declared: Any, axis: int, back: int) -> str:
    """Rows from the last to the first, and along another axis than the first, where that is asked for."""
    if back:
        given = [w.constant([number], np.int64) for number in (-1, -(1 << 62), 0, -1)]
        rows = w.op("Slice", rows, *given)
    if not axis:
        return rows
    if not declared.HasField("shape"):
        raise Refused("Scan whose body does not declare ranks of what it gives, along another axis")
    order = [*range(1, len(declared.shape.dim) + 1)]
    order.insert(axis % (len(order) + 1), 0)
    return w.op("Transpose", rows, perm=order)


def _constant(name: str, value: int) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value)))
