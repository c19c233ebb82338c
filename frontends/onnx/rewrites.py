"""Nodes that torch-mlir gets wrong or lacks, written out in operators that it has, before it imports a model.

Quantised integers become floats that are whole: what is between a QuantizeLinear and a DequantizeLinear is never seen
from outside, and every operator in between is written out, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from devscope.frontends.onnx import einsums as _einsums
from devscope.frontends.onnx import images as _images
from devscope.frontends.onnx import normalisations as _normalisations
from devscope.frontends.onnx import places as _places
from devscope.frontends.onnx import products as _products
from devscope.frontends.onnx import quantised as _quantised
from devscope.frontends.onnx import regions as _regions
from devscope.frontends.onnx import resizing as _resizing
from devscope.frontends.onnx import scans as _scans
from devscope.frontends.onnx import selections as _selections
from devscope.frontends.onnx import series as _series
from devscope.frontends.onnx import suppression as _suppression
from devscope.frontends.onnx import windows as _windows
from devscope.frontends.onnx.inference import inferred
from devscope.frontends.onnx.prepare import all_nodes
from devscope.frontends.onnx.quantised import MOVES, SIGNED, cast, moved
from devscope.frontends.onnx.rewriter import REWRITES, Graph, Writer, rewrites
from devscope.frontends.onnx.types import Refused, element_of, width

#: Each registers the operators that it writes out.
MODULES = (
    *(_einsums, _images, _normalisations, _places, _products, _quantised, _regions, _resizing),
    *(_scans, _selections, _series, _suppression, _windows),
)


@rewrites("ArgMax", "ArgMin")
def _last_index(w: Writer) -> None:
    """torch-mlir takes the first of equal elements: from behind, where the last is asked for."""
    given = {name: value for name, value in w.attributes.items() if name != "select_last_index"}
    if not w.attr("select_last_index", 0):
        w.op(w.node.op_type, w[0], result=0, **given)
        return
    axis = w.attr("axis", 0)
    last = w.op("Sub", w.extent(w[0], axis), w.constant(1, np.int64))
    backwards = w.op("Sub", last, w.range(w.extent(w[0], axis)))
    turned = w.op("Gather", w[0], backwards, axis=axis)
    w.op("Sub", last, w.op(w.node.op_type, turned, **given), result=0)


@rewrites("Gelu")
def _gelu(w: Writer) -> None:
    """torch-mlir's factors of the one with a tangent have four digits."""
    if w.attr("approximate", "none") != "tanh":
        w.op("Gelu", w[0], result=0, **w.attributes)
        return
    cube = w.op("Mul", w.op("Mul", w[0], w[0]), w[0])
    inner = w.op("Add", w[0], w.op("Mul", cube, w.number(0.044715)))
    share = w.op("Add", w.op("Tanh", w.op("Mul", inner, w.number((2 / np.pi) ** 0.5))), w.number(1))
    w.op("Mul", w.op("Mul", w[0], w.number(0.5)), share, result=0)


@rewrites("Softsign")
def _softsign(w: Writer) -> None:
    w.op("Div", w[0], w.op("Add", w.op("Abs", w[0]), w.number(1)), result=0)


@rewrites("Range")
def _range(w: Writer) -> None:
    """torch-mlir rounds the number of elements down, and makes it negative."""
    start, end, step = (w.data(number) for number in range(3))
    if start == 0 and step == 1 and end is None and w.type() == TensorProto.INT64:
        found = w.op("Max", w[1], w.constant(0, np.int64))
        w.op("Range", w[0], found, w[2], result=0)
    else:
        w.op("Identity", _counted(w, w[0], w[1], w[2], w.type()), result=0)


def _counted(w: Writer, start: str, end: str, step: str, kind: int) -> str:
    """The numbers from one scalar on up or down to another."""
    span = w.op("Sub", end, start)
    if kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        count = w.to(w.op("Ceil", w.op("Div", span, step)), np.int64)
    else:
        size, sign = w.op("Abs", step), w.op("Sign", step)
        span = w.op("Add", w.op("Mul", span, sign), w.op("Sub", size, w.op("Abs", sign)))
        count = w.to(w.op("Div", span, size), np.int64)
    places = w.op("Cast", w.range(w.op("Max", count, w.constant(0, np.int64))), to=kind)
    return w.op("Add", w.op("Mul", places, step), start)


@rewrites("Slice")
def _slice(w: Writer) -> None:
    """Backwards, torch-mlir begins outside where the start is beyond the end: at places that are computed."""
    steps = w.data(4)
    if steps is None or (steps > 0).all() or (w.has(3) and w.data(3) is None):
        w.op("Slice", *w.node.input, result=0, **w.attributes)
        return
    rank, x = w.rank(0), w[0]
    axes = range(len(steps)) if w.data(3) is None else [int(axis) % rank for axis in w.data(3)]
    zero, one = w.constant(0, np.int64), w.constant(1, np.int64)
    for number, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        at = w.constant(number, np.int64)
        start, end = (w.to(w.op("Gather", given, at, axis=0), np.int64) for given in (w[1], w[2]))
        count = w.extent(x, axis)
        least, most = (zero, count) if step > 0 else (w.constant(-1, np.int64), w.op("Sub", count, one))
        ends: list[str] = []
        for place, lowest in ((start, zero), (end, least)):
            inside = w.op("Where", w.op("Less", place, zero), w.op("Add", place, count), place)
            ends.append(w.op("Min", w.op("Max", inside, lowest), most))
        places = _counted(w, ends[0], ends[1], w.constant(step, np.int64), TensorProto.INT64)
        x = w.op("Gather", x, places, axis=axis)
    w.op("Identity", x, result=0)


@rewrites("DepthToSpace")
def _depth_to_space(w: Writer) -> None:
    """torch-mlir knows one order of channels."""
    size, x = w.attr("blocksize"), w[0]
    if w.attr("mode", "DCR") == "CRD":
        channels = w.graph.shapes.get(x, [None, None])[1]
        if not isinstance(channels, int):
            raise Refused("DepthToSpace of channels known at run time only")
        order = np.arange(channels).reshape(-1, size * size).T.reshape(-1)
        x = w.op("Gather", x, w.constant(order, np.int64), axis=1)
    w.op("DepthToSpace", x, blocksize=size, mode="DCR", result=0)


@rewrites("SpaceToDepth")
def _space_to_depth(w: Writer) -> None:
    size = w.attr("blocksize")
    step = w.constant(size, np.int64)
    count, channels, *extents = (w.extent(w[0], axis) for axis in range(4))
    height, width = (w.op("Div", extent, step) for extent in extents)
    parts = w.op("Transpose", w.shaped(w[0], count, channels, height, size, width, size), perm=[0, 3, 5, 1, 2, 4])
    depth = w.op("Mul", channels, w.constant(size * size, np.int64))
    w.op("Identity", w.shaped(parts, count, depth, height, width), result=0)


@rewrites("Reshape")
def _reshape(w: Writer) -> None:
    """Where several dimensions of any size become one, torch-mlir takes some of them to be 1: not of one dimension."""
    given, shape = w.data(1), w.graph.shapes.get(w[0])
    if given is None and shape is not None and sum(not isinstance(extent, int) for extent in shape) > 1:
        sizes = _computed_sizes(w)
        x = w.op("Reshape", w[0], w.constant([-1], np.int64)) if sizes else w[0]
        w.op("Reshape", x, sizes or w[1], result=0, **w.attributes)
        return
    asked = [] if given is None else [int(extent) for extent in given]
    copied = [axis for axis, extent in enumerate(asked) if extent == 0 and not w.attr("allowzero", 0)]
    merged = [extent for axis, extent in enumerate(shape or ["?", "?"]) if shape is None or axis not in copied]
    if asked == [-1] or -1 not in asked or sum(not isinstance(extent, int) for extent in merged) < 2:
        w.op("Reshape", *w.node.input, result=0, **w.attributes)
        return
    parts = [
        w.op("Gather", w.op("Shape", w[0]), w.constant([axis], np.int64), axis=0)
        if axis in copied
        else w.constant([extent], np.int64)
        for axis, extent in enumerate(asked)
    ]
    rest = w.op("Reshape", w.op("Size", w[0]), w.constant([1], np.int64))
    for axis, part in enumerate(parts):
        rest = rest if asked[axis] == -1 else w.op("Div", rest, part)
    parts[asked.index(-1)] = rest
    flat = w.op("Reshape", w[0], w.constant([-1], np.int64))
    w.op("Reshape", flat, w.op("Concat", *parts, axis=0), result=0)


def _computed_sizes(w: Writer) -> str:
    """What a Reshape's second operand says, for an operand of one dimension, where it is put together of others."""
    made = next((one for one in w.graph.model.graph.node if w[1] in one.output), None)
    if made is None or made.op_type not in ("Concat", "Shape"):
        return ""
    parts: list[str] = []
    plain = True
    for name in made.input if made.op_type == "Concat" else [w[1]]:
        values = w.graph.data(name)
        if values is None:
            parts.append(name)
            plain = plain and w.graph.shapes.get(name) == [1]
            continue
        for value in map(int, values):
            if value == 0 and not w.attr("allowzero", 0):
                if not plain:
                    return ""
                place = w.constant([len(parts)], np.int64)
                parts.append(w.op("Gather", w.op("Shape", w[0]), place, axis=0))
            else:
                parts.append("" if value == -1 else w.constant([value], np.int64))
    if "" in parts:
        if not plain:
            return ""
        one = rest = w.constant([1], np.int64)
        for part in filter(None, parts):
            rest = w.op("Mul", rest, part)
        parts[parts.index("")] = w.op("Div", w.op("Reshape", w.op("Size", w[0]), one), w.op("Max", rest, one))
    return w.op("Concat", *parts, axis=0)


@rewrites("Squeeze")
def _squeeze(w: Writer) -> None:
    """torch-mlir has none of a dimension of any size: a reshape, which looks whether it is 1."""
    axes, shape = w.data(1) if w.has(1) else w.attr("axes"), w.graph.shapes.get(w[0])
    if axes is None or shape is None or all(shape[int(axis)] == 1 for axis in axes):
        w.op("Squeeze", *w.node.input, result=0, **w.attributes)
        return
    gone = {int(axis) % len(shape) for axis in axes}
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    w.op("Reshape", w[0], w.op("Gather", w.op("Shape", w[0]), w.constant(kept, np.int64), axis=0), result=0)


def rewritten(model: Any, outside: Mapping[str, memoryview]) -> tuple[Any, dict[str, memoryview]]:
    """A model in which these operators are written out, and the data of its large initializers. Raises `Refused`."""
    unsigned = [one for one in model.graph.input if one.type.tensor_type.elem_type in SIGNED]
    if not unsigned and not any(node.op_type in REWRITES for node in all_nodes(model.graph)):
        return model, dict(outside)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = Graph(result, outside)
    opset = max(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    nodes: list[Any] = []
    for given in result.graph.input:
        if given.type.tensor_type.elem_type in SIGNED:
            nodes += _unsigned(graph, given, opset)
    nodes += _written(graph, model.graph.node, opset)
    for made in result.graph.output:
        if made.name in graph.whole:
            nodes += _integers(graph, made, opset)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    used = {name for node in all_nodes(result.graph) for name in node.input}
    kept = [tensor for tensor in result.graph.initializer if tensor.name in used]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    values = used - {*graph.whole}  # some exporters say types of constants, too
    known = [info for info in result.graph.value_info if info.name in values]
    del result.graph.value_info[:]
    result.graph.value_info.extend(known)
    return inferred(result), {name: data for name, data in graph.outside.items() if name in used}


def _written(graph: Graph, given: Iterable[Any], opset: int) -> list[Any]:
    nodes: list[Any] = []
    for node in given:
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
            node = _with_bodies(graph, node, opset)
        if node.op_type == "Gather" and _is_unsigned(graph, node.input[0]):
            nodes += _rows_of_unsigned(graph, node, opset)
            continue
        rewrite = REWRITES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if rewrite is None or node.op_type in MOVES:
            node = moved(graph, node)
        if rewrite is None:
            nodes.append(node)
            continue
        writer = Writer(graph, node, opset)
        rewrite(writer)
        if len(writer.nodes) == 1:
            writer.nodes[0].name = node.name  # by which rules place it
        nodes += writer.nodes
    return nodes


def _with_bodies(graph: Graph, node: Any, opset: int) -> Any:
    """A node whose bodies are written out."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    for attribute in result.attribute:
        body = attribute.g
        if attribute.type != onnx.AttributeProto.GRAPH or not any(
            one.op_type in REWRITES for one in all_nodes(body)
        ):
            continue
        graph.learn(body)
        for number, inner in enumerate(body.node):
            inner.name = f"{inner.name or inner.op_type}.{number}"
        nodes = _written(graph, body.node, opset)
        if any(one.name in graph.whole for one in body.output):
            raise Refused(f"{node.op_type} of quantised numbers, of shapes known at run time only")
        del body.node[:]
        body.node.extend(nodes)
        known = [info for info in body.value_info if info.name not in graph.whole]
        del body.value_info[:]
        body.value_info.extend(known)
    return result


def _is_unsigned(graph: Graph, name: str) -> bool:
    return name not in graph.whole and graph.type_of(name) in SIGNED and graph.data(name) is not None


def _unsigned(graph: Graph, given: Any, opset: int) -> list[Any]:
    """An input of unsigned integers, as floats: torch-mlir gets them signed, since it forgets that they are not."""
    w = Writer(
        graph, helper.make_node("Bytes", [f"{given.name}.signed"], [given.name], f"{given.name}.bytes"), opset
    )
    kind = given.type.tensor_type.elem_type
    given.name, given.type.tensor_type.elem_type = w[0], SIGNED[kind]
    _from_signed(w, w[0], kind)
    return w.nodes


def _rows_of_unsigned(graph: Graph, node: Any, opset: int) -> list[Any]:
    """A Gather of a constant: what it takes becomes floats, not all that it takes them of."""
    w = Writer(graph, node, opset)
    kind = w.graph.type_of(w[0])
    table = graph.constant(w.data(0).view(helper.tensor_dtype_to_np_dtype(SIGNED[kind])))
    _from_signed(w, w.op("Gather", table, w[1], **w.attributes), kind)
    return w.nodes


def _from_signed(w: Writer, x: str, kind: int) -> None:
    """The first result: floats that are whole."""
    signed, above = w.op("Cast", x, to=TensorProto.FLOAT), w.constant(1 << width(element_of(kind)))
    w.op("Where", w.op("Less", signed, w.constant(0)), w.op("Add", signed, above), signed, result=0)
    w.graph.whole[w.node.output[0]] = kind


def _integers(graph: Graph, made: Any, opset: int) -> list[Any]:
    """A result that is floats now, as the integers it shall be."""
    to = graph.whole[made.name]
    w = Writer(
        graph, helper.make_node("Whole", [made.name], [f"{made.name}.whole"], f"{made.name}.integers"), opset
    )
    made.name, value = w.node.output[0], w.to(w[0], np.int32)
    if to in SIGNED:
        count = 1 << width(element_of(to))
        above = w.op("Greater", value, w.constant(count // 2 - 1, np.int32))
        value, to = w.op("Where", above, w.op("Sub", value, w.constant(count, np.int32)), value), SIGNED[to]
    made.type.tensor_type.elem_type = to
    cast(w, value, to)
    return w.nodes
