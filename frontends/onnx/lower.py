"""A whole model of static shapes as a StableHLO module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from devscope.frontends.onnx import contractions as _contractions
from devscope.frontends.onnx import control as _control
from devscope.frontends.onnx import elementwise as _elementwise
from devscope.frontends.onnx import indexing as _indexing
from devscope.frontends.onnx import lists as _lists
from devscope.frontends.onnx import reductions as _reductions
from devscope.frontends.onnx import resampling as _resampling
from devscope.frontends.onnx import shapes as _shapes
from devscope.frontends.onnx.builder import Builder, Value, tensor_type
from devscope.frontends.onnx.devices import devices_of
from devscope.frontends.onnx.graph import Scope, array_of, element_of_array
from devscope.frontends.onnx.types import (
    ELEMENTS,
    Imported,
    Refused,
    element_of,
    is_code,
    is_float,
    is_unsigned,
    width,
)

#: Each registers the operators that it lowers.
MODULES = (_contractions, _control, _elementwise, _indexing, _lists, _reductions, _resampling, _shapes)


def lower(model: Any, outside: Mapping[str, memoryview]) -> Imported:
    """The module of a model, the function ``main``. Raises `Refused`."""
    graph = model.graph
    builder = Builder()
    opsets = {"" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import}
    scope = Scope(builder, opsets, {(one.domain, one.name): one for one in model.functions})
    scope.devices = devices_of(model)
    scope.declare([*graph.value_info, *graph.output])
    initialised = {tensor.name for tensor in graph.initializer}
    arguments: list[tuple[Value, str]] = []
    for info in graph.input:
        if info.name not in initialised:
            element, shape = _static_type(info)
            value = Value(f"%arg{len(arguments)}", element, shape)
            arguments.append((value, info.name))
            scope.values[info.name] = value
    literals: dict[str, memoryview] = {}
    for tensor in graph.initializer:
        if tensor.name in outside:
            name, data = f"weight{len(literals)}", outside[tensor.name]
            literals[name] = _unpacked(tensor, data) if width(element_of(tensor.data_type)) < 8 else data
            scope.values[tensor.name] = _resource(builder, tensor, name)
        else:
            scope.known[tensor.name] = array_of(tensor)
    if graph.sparse_initializer:
        raise Refused("sparse initializers are not supported")
    scope.run(graph.node)
    results = [scope.value(output.name) for output in graph.output]
    if not any("stablehlo." in line for line in builder.lines):
        results = [
            builder.op(f"stablehlo.optimization_barrier {v.name} : {v.type}", v.element, v.shape) for v in results
        ]
    heads = ", ".join(f'{v.name}: {v.type} loc("{_quoted(name)}")' for v, name in arguments)
    types = ", ".join(v.type for v in results)
    lines = [f"func.func @main({heads}) -> ({types}) {{", *builder.lines]
    end = f"  return {', '.join(v.name for v in results)} : {types}" if results else "  return"
    elements = [value.element for value, _ in arguments], [value.element for value in results]
    return Imported("\n".join([*lines, end, "}"]), elements, literals)


def is_static(model: Any) -> bool:
    """Whether all inputs are tensors of known shapes."""
    initialised = {tensor.name for tensor in model.graph.initializer}
    for info in model.graph.input:
        type_ = info.type.tensor_type
        known = type_.HasField("shape") and all(dim.HasField("dim_value") for dim in type_.shape.dim)
        if info.name not in initialised and not known:
            return False
    return True


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _static_type(info: Any) -> tuple[str, tuple[int, ...]]:
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        what = (kind or "unknown type").replace("_type", "").replace("_", " ")
        raise Refused(f"input '{info.name}' is of type {what}; inputs are tensors")
    type_ = info.type.tensor_type
    element = element_of(type_.elem_type)
    if not type_.HasField("shape"):
        raise Refused(f"input '{info.name}' has no shape")
    for dim in type_.shape.dim:
        if not dim.HasField("dim_value"):
            raise Refused(f"dimension '{dim.dim_param or '?'}' of input '{info.name}' is known at run time only")
    return element, tuple(dim.dim_value for dim in type_.shape.dim)


def _unpacked(tensor: Any, data: memoryview) -> memoryview:
    """Elements of less than 8 bits, several of which ONNX has in a byte, in bytes: numbers, floats as f8E4M3FN."""
    whole = onnx.TensorProto()
    whole.CopyFrom(tensor)
    whole.raw_data = bytes(data)
    array = numpy_helper.to_array(whole)
    if is_float(element_of(tensor.data_type)):
        array = array.astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _resource(b: Builder, tensor: Any, name: str) -> Value:
    """A constant whose data is outside of the module: of signless integers, or floats that constants may have."""
    element, shape = element_of(tensor.data_type), tuple(tensor.dims)
    if width(element) < 8:
        whole = "ui8" if is_unsigned(element) else "f8E4M3FN" if is_float(element) else "i8"
        number = next(number for number, name_ in ELEMENTS.items() if name_ == whole)
        return b.convert(_resource(b, onnx.TensorProto(data_type=number, dims=shape), name), element)
    stored = f"i{width(element)}" if is_unsigned(element) or is_code(element) else element
    value = b.fresh(stored, shape)
    b.emit(f"{value.name} = arith.constant dense_resource<{name}> : {tensor_type(stored, shape)}")
    return b.bitcast(value, element)


__all__ = ["element_of_array", "lower"]
