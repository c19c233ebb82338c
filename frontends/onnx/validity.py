"""What ONNX itself says against a model."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import onnx
from onnx import helper

from devscope.frontends.onnx.prepare import all_nodes, name_nodes

_UNKNOWN = "devscope.unknown"
"""A domain of operators that ONNX does not look at."""
_NOISE = re.compile(r"\[\w+Error\] (Inference error\(s\): )?")
_CONTEXT = re.compile(r"==> Context: Bad node spec for node\. Name: (\S*) OpType: \S+")
_LONGEST = 300
"""Most characters of a complaint."""


def complaint(model: Any, outside: Collection[str]) -> str | None:
    """What ONNX's checker or its inference of shapes finds wrong, in a line; None for a valid model.

    Sizes that the model declares inside of it are not looked at, nor operators that ONNX does not know.
    ``outside``: initializers without their data.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    name_nodes(copy)
    _hide_data(copy.graph, outside)
    for graph in (copy, *copy.functions):
        _hide_unknown(graph, {(one.domain, one.name) for one in copy.functions})
    del copy.graph.value_info[:]
    results = [one for one in copy.graph.output if one.type.WhichOneof("value")]  # others get a type by inference
    copy.graph.ClearField("output")
    copy.graph.output.extend(results)
    tensors = [one.type.tensor_type for one in copy.graph.output if one.type.HasField("tensor_type")]
    for tensor in tensors:
        tensor.shape.SetInParent()  # the checker asks for one
    try:
        onnx.checker.check_model(copy)
        for tensor in tensors:
            tensor.ClearField("shape")
        result = onnx.shape_inference.infer_shapes(copy, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # of C++, of several kinds
        said = _CONTEXT.sub(r"(node \1)", _NOISE.sub("", " ".join(str(error).split())))
        return said[:_LONGEST] or type(error).__name__
    return _channels_complaint(result.graph)


_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "ConvTranspose": 1, "DeformConv": 1}
"""Of convolutions: which operand."""


def _channels_complaint(graph: Any) -> str | None:
    """What ONNX does not look at: whether weights are for as many channels as there are."""
    sizes = {one.name: [*one.dims] for one in graph.initializer}
    for info in (*graph.input, *graph.value_info):
        dims = info.type.tensor_type.shape.dim
        sizes[info.name] = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
    for node in graph.node:
        known = sizes.get(node.input[0]) if node.op_type in _WEIGHTS and node.domain in ("", "ai.onnx") else None
        weights = sizes.get(node.input[_WEIGHTS[node.op_type]]) if known else None
        if not known or not weights or None in (known[1], weights[0], weights[1]):
            continue
        groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
        is_transposed = node.op_type == "ConvTranspose"
        wanted = weights[0] if is_transposed else weights[1] * groups
        if known[1] != wanted or weights[0] % groups:
            of = f", of {groups} groups," if groups != 1 else ""
            shape = "x".join("?" if size is None else str(size) for size in weights)
            return f"{node.op_type} of {known[1]} channels by weights of {shape}{of} (node {node.name})"
    return None


def unknown_operator(model: Any) -> str | None:
    """That an operator is not supported, where the model has one that ONNX does not know."""
    versions = _versions(model)
    for node in all_nodes(model.graph):
        if _schema(node, versions) is None:
            return not_supported(node)
    return None


def not_supported(node: Any) -> str:
    domain = f" of '{node.domain}'" if node.domain else ""
    return f"operator {node.op_type}{domain} is not supported"


def _versions(model: Any) -> dict[str, int]:
    return {"" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import}


def _schema(node: Any, versions: dict[str, int]) -> Any:
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        return onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return None


def _hide_data(graph: Any, outside: Collection[str]) -> None:
    """Initializers without data become inputs."""
    kept = [tensor for tensor in graph.initializer if tensor.name not in outside]
    inputs = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name in outside and tensor.name not in inputs:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _hide_unknown(model: Any, local: Collection[tuple[str, str]]) -> None:
    """Operators of others, those that later versions lack, and those whose inference ONNX has by a body that it
    cannot infer."""
    versions = _versions(model)
    for node in all_nodes(getattr(model, "graph", model)):
        if (node.domain, node.op_type) in local:
            continue
        schema = _schema(node, versions)
        by_body = schema and schema.has_function and not schema.has_type_and_shape_inference_function
        if schema is None or schema.deprecated or by_body:
            node.domain = _UNKNOWN
    model.opset_import.append(helper.make_opsetid(_UNKNOWN, 1))
