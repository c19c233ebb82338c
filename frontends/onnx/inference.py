"""Shapes of a model's values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx


def inferred(model: Any) -> Any:
    """A model with inferred shapes; as it is, where ONNX finds them contradictory."""
    try:
        result = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of C++, of several kinds
        return model
    _forget_results(result.graph)
    return result


def _forget_results(graph: Any) -> None:
    """What was known of results of a branch before stands among its other values, where torch-mlir looks first."""
    names = {one.name for one in graph.output}
    kept = [info for info in graph.value_info if info.name not in names]
    if len(kept) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(kept)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _forget_results(attribute.g)


def inferred_with_loops(model: Any) -> Any:
    """Also of what is behind loops, of whose results ONNX says no shape: they have the ranks of what is carried, and
    sizes that the body declares."""
    while True:
        model = inferred(model)
        graph = model.graph
        infos = {one.name: one for one in (*graph.input, *graph.value_info, *graph.output)}
        ranks = {name: len(one.type.tensor_type.shape.dim) for name, one in infos.items() if _has_shape(one)}
        ranks |= {one.name: len(one.dims) for one in graph.initializer}
        found = [one for node in graph.node if node.op_type == "Loop" for one in _results(node, ranks, infos)]
        results = {one.name for one in graph.output}
        kept = [one for one in graph.value_info if _has_shape(one) and one.name not in results]
        for info in found:
            if info.name in results:
                infos[info.name].CopyFrom(info)
            else:
                kept.append(info)
        if not found:
            return model
        del graph.value_info[:]
        graph.value_info.extend(kept)


def _has_shape(info: Any) -> bool:
    return info.type.tensor_type.HasField("shape")


def _results(loop: Any, ranks: dict[str, int], infos: dict[str, Any]) -> Iterator[Any]:
    """Types of results of a loop whose shapes are not known yet, and ranks can be said."""
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    count = len(loop.input) - 2
    for number, (name, made) in enumerate(zip(loop.output, body.output[1:], strict=False)):
        if not name or name in ranks:
            continue
        declared = [dim.dim_value or None for dim in made.type.tensor_type.shape.dim] if _has_shape(made) else None
        if number < count:
            rank = ranks.get(loop.input[2 + number])
            if rank is None:
                continue
            dims = declared if declared is not None and len(declared) == rank else [None] * rank
        elif declared is None:
            continue
        else:
            dims = [None, *declared]
        element = (
            made.type.tensor_type.elem_type or getattr(infos.get(name), "type", made.type).tensor_type.elem_type
        )
        if element:
            yield onnx.helper.make_tensor_value_info(name, element, dims)


def with_constants_inside(model: Any) -> Any:
    """A model whose branches and bodies have the constants that they take from around them, which ONNX does not look
    for there."""
    if not any(attribute.HasField("g") for node in model.graph.node for attribute in node.attribute):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    _put_constants(result.graph, {})
    return result


def _put_constants(graph: Any, known: dict[str, Any]) -> None:
    known = known | {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = node.attribute[0].t
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            own = {tensor.name for tensor in attribute.g.initializer}
            for name in dict.fromkeys(captured(attribute.g)):
                if name in known and name not in own:
                    tensor = attribute.g.initializer.add()
                    tensor.CopyFrom(known[name])
                    tensor.name = name
            _put_constants(attribute.g, known)


def captured(graph: Any) -> Iterator[str]:
    """The names of values that a graph inside of a node takes from around it."""
    own = {one.name for one in (*graph.input, *graph.initializer)}
    for node in graph.node:
        inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        for name in (*node.input, *(name for each in inner for name in captured(each))):
            if name and name not in own:
                yield name
        own.update(node.output)
    yield from (one.name for one in graph.output if one.name not in own)
