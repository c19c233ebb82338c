"""What is done to a model before it is imported: opsets are converted, shapes inferred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import onnx.inliner

from devscope.frontends.onnx.contributed_quantised import with_weights_of_4_bits
from devscope.frontends.onnx.inference import inferred

_LEAST_OPSET = 17


def prepare(proto: Any, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Any:
    """A model with inferred shapes, all nodes of which have names; the operand stays as it is.

    ``shapes`` are those of inputs, where dimensions of any size shall have one.
    """
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    if not any(one.domain in ("", "ai.onnx") for one in model.opset_import):
        # Only of ai.onnx.ml, say: it is written out in ONNX's own operators.
        model.opset_import.append(onnx.helper.make_opsetid("", _LEAST_OPSET))
    for info in model.graph.input:
        for dim, extent in zip(info.type.tensor_type.shape.dim, (shapes or {}).get(info.name, ()), strict=False):
            dim.dim_value = extent
    if shapes:
        del model.graph.value_info[:]
        for info in model.graph.output:
            for dim in info.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
    for info in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value < 0:  # as some exporters write any size
                dim.ClearField("dim_value")
    name_nodes(model)
    with_weights_of_4_bits(model)
    return inferred(model)


def name_nodes(model: Any) -> None:
    """Those without a name get one of what they are and which."""
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"


def expanded(model: Any) -> Any:
    """A model whose own functions stand where they are called."""
    if not model.functions:
        return model
    result = onnx.inliner.inline_local_functions(_with_defaults(model))
    name_nodes(result)
    return inferred(result)


def _with_defaults(model: Any) -> Any:
    """A model that calls its functions with all attributes: ONNX's inliner does not look at their defaults."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    defaults = {(one.domain, one.name): one.attribute_proto for one in result.functions}
    for graph in (result.graph, *result.functions):
        for node in all_nodes(graph):
            given = {attribute.name for attribute in node.attribute}
            known = defaults.get((node.domain, node.op_type), ())
            node.attribute.extend(attribute for attribute in known if attribute.name not in given)
    return result


def converted(model: Any) -> Any:
    """A model of the opset that torch-mlir's importer knows at least; as it is, where it cannot be converted."""
    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    if not versions or max(versions) >= _LEAST_OPSET:
        return model
    try:
        result = onnx.version_converter.convert_version(model, _LEAST_OPSET)
    except Exception:  # as above
        return model
    if len(result.graph.node) == len(model.graph.node):
        for node, old in zip(result.graph.node, model.graph.node, strict=True):
            node.name = node.name or old.name
    _place_as(result, model)
    _mean_as(result.graph, max(versions))
    return inferred(result)


def _mean_as(graph: Any, opset: int) -> None:
    """Say what nodes meant in an older version, where ONNX's converter does not."""
    nodes: list[Any] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _mean_as(attribute.g, opset)
        if node.op_type == "Resize" and opset < 11:
            for name, value in (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor")):
                node.attribute.append(onnx.helper.make_attribute(name, value))
        nodes += _of_matrix(node) if node.op_type == "Hardmax" and opset < 13 else [node]
    del graph.node[:]
    graph.node.extend(nodes)


def _of_matrix(node: Any) -> list[Any]:
    """A Hardmax of the matrix whose columns are all dimensions from its axis on."""
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    make, name, x, y = onnx.helper.make_node, node.name, node.input[0], node.output[0]
    result = onnx.NodeProto()
    result.CopyFrom(node)
    result.input[0], result.output[0] = f"{name}.matrix", f"{name}.found"
    del result.attribute[:]
    result.attribute.append(onnx.helper.make_attribute("axis", 1))
    return [
        make("Shape", [x], [f"{name}.shape"], f"{name}.0"),
        make("Flatten", [x], [f"{name}.matrix"], f"{name}.1", axis=axis),
        result,
        make("Reshape", [f"{name}.found", f"{name}.shape"], [y], f"{name}.2"),
    ]


def _place_as(model: Any, source: Any) -> None:
    """Give a converted model what the source says about the devices and layers of nodes, which ONNX drops."""
    nodes = {node.name: node for node in source.graph.node}
    if not model.configuration:
        model.configuration.extend(source.configuration)
    for node in model.graph.node:
        old = nodes.get(node.name)
        if old is not None and not node.metadata_props:
            node.metadata_props.extend(old.metadata_props)
        if old is not None and not node.device_configurations:
            node.device_configurations.extend(old.device_configurations)


def with_computed_results(model: Any) -> Any:
    """A model whose results are made by nodes: torch-mlir's importer has no others."""
    made = {name for node in model.graph.node for name in node.output}
    given = {one.name for one in model.graph.output} - made
    if not given:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for info in result.graph.output:
        if info.name in given:
            name = f"{info.name}.result"
            result.graph.node.append(onnx.helper.make_node("Identity", [info.name], [name], name))
            info.name = name
    return result


def all_nodes(graph: Any) -> Iterator[Any]:
    """Those of a graph, and of the graphs in them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)
