"""Operands whose sizes may be 1 in a call become as large as the others before torch-mlir imports a model, which only
has dimensions that are 1 always, or equal.

`BROADCAST` is no operator of ONNX: `torch_broadcasts` imports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import helper

from devscope.frontends.onnx.rewriter import Graph

BROADCAST = "DevscopeBroadcast"
"""Its first operand, along axes that the attribute ``axes`` has triples of: an axis, one of the other operands, and
an axis of that, or with ``elements`` the number of an element that says the size."""

_ELEMENTWISE = frozenset(
    [
        *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "PRelu", "Where", "Max", "Min", "Sum", "Mean", "BitShift"),
        *("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
        *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
    ]
)
_Size = int | str | None
_Place = tuple[int, int]
"""An operand and one of its axes."""


def with_broadcasts(model: Any, outside: Mapping[str, memoryview]) -> Any:
    """A model, the shapes of which are inferred, with `BROADCAST` where sizes that meet are not known to be equal."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    _put(Graph(result, outside), result.graph)
    return result


def _put(graph: Graph, proto: Any) -> None:
    nodes: list[Any] = []
    for node in proto.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                graph.learn(attribute.g)
                _put(graph, attribute.g)
        nodes += _written(graph, node, proto)
    del proto.node[:]
    proto.node.extend(nodes)


def _written(graph: Graph, node: Any, proto: Any) -> Iterator[Any]:
    """What makes its operands larger, and the node. All have its name, by which it is placed."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    for number, places in _needed(graph, node).items():
        others = sorted({place[0] for _, all_ in places for place in all_})
        axes = [number for axis, all_ in places for at, dim in all_ for number in (axis, others.index(at), dim)]
        name = f"{node.output[0]}.operand{number}"
        made = helper.make_node(
            BROADCAST, [node.input[at] for at in (number, *others)], [name], node.name, axes=axes,
            elements=int(node.op_type == "Expand"),
        )  # fmt: skip
        made.metadata_props.extend(node.metadata_props)
        made.device_configurations.extend(node.device_configurations)
        known = dict(enumerate(graph.shapes[node.input[number]]))
        shape = [
            size if isinstance(size, int) else None for size in (known | dict.fromkeys(dict(places))).values()
        ]
        proto.value_info.append(helper.make_tensor_value_info(name, graph.type_of(node.input[number]), shape))
        result.input[number] = name
        yield made
    yield result


def _needed(graph: Graph, node: Any) -> dict[int, list[tuple[int, list[_Place]]]]:
    """Of operands, by number: their axes that may be 1 where others are not, and the places of these."""
    names = [*node.input]
    if node.domain not in ("", "ai.onnx") or any(name and name not in graph.shapes for name in names):
        return {}
    sizes = [[size or f"{name}.{at}" for at, size in enumerate(graph.shapes.get(name, ()))] for name in names]
    if node.op_type == "Expand":
        return _needed_to_expand(graph, node, sizes)
    if node.op_type in _ELEMENTWISE or node.op_type == "MatMul":
        least = 3 if node.op_type == "MatMul" else 1
        rows = [
            [(number, len(shape) - place) for number, shape in enumerate(sizes) if place <= len(shape)]
            for place in range(least, max(map(len, sizes)) + 1)
        ]
        if least == 3 and min(map(len, sizes)) < 2:
            return {}
    elif node.op_type == "Gemm" and len(names) == 3 and names[2]:
        given = {one.name: one.i for one in node.attribute}
        sources = [(0, given.get("transA", 0)), (1, 1 - given.get("transB", 0))]
        rank = len(sizes[2])
        rows = [[(2, axis), source] for axis, source in zip(range(rank), sources[2 - rank :], strict=True)]
    else:
        return {}
    found: dict[int, list[tuple[int, list[_Place]]]] = {}
    for row in rows:
        for place in row:
            size = sizes[place[0]][place[1]]
            others = [one for one in row if sizes[one[0]][one[1]] not in (size, 1)]
            is_result = node.op_type == "Gemm" and place[0] < 2  # a product's own sizes stay
            if isinstance(size, str) and others and not is_result:
                found.setdefault(place[0], []).append((place[1], others))
    return found


def _needed_to_expand(graph: Graph, node: Any, sizes: list[list[int | str]]) -> Any:
    """Its second operand says sizes; what is known of them, the shape of the result tells."""
    (count,), made = sizes[1], graph.shapes.get(node.output[0])
    if not isinstance(count, int) or made is None:
        return {}
    values, rank = graph.data(node.input[1]), len(sizes[0])
    places = [
        (axis, [(1, count - rank + axis)])
        for axis, size in enumerate(sizes[0])
        if isinstance(size, str) and size != made[len(made) - rank + axis] and count - rank + axis >= 0
        if values is None or values[count - rank + axis] != 1
    ]
    return {0: places} if places else {}
