"""What rewrites a model's nodes before torch-mlir imports it: a table of functions, and what they know and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from devscope.frontends.onnx.types import Refused
from devscope.frontends.onnx.weights import LEAST_BYTES


class Graph:
    """What is known of the values of a model's graph; initializers are added to it."""

    def __init__(self, model: Any, outside: Mapping[str, memoryview]) -> None:
        self.model, self.outside = model, dict(outside)
        self.shapes: dict[str, list[int | str | None]] = {}
        self._types: dict[str, int] = {}
        self._tensors: dict[str, Any] = {}
        self.learn(model.graph)
        self.whole: dict[str, int] = {}
        """Quantised values, which are floats now, and the types that they had."""

    def learn(self, graph: Any) -> None:
        """What the graph itself, or one in it, says of its values."""
        for info in [*graph.input, *graph.value_info, *graph.output]:
            type_ = info.type.tensor_type
            self._types[info.name] = type_.elem_type
            if type_.HasField("shape"):
                self.shapes[info.name] = [dim.dim_value or dim.dim_param or None for dim in type_.shape.dim]
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and (tensor := tensor_of(node.attribute[0])) is not None:
                tensors[node.output[0]] = tensor
        self._tensors |= tensors
        for name, tensor in tensors.items():
            self.shapes[name], self._types[name] = [*tensor.dims], tensor.data_type

    def data(self, name: str) -> Any:
        """The elements of a constant; None of other values."""
        tensor = self._tensors.get(name)
        if tensor is None:
            return None
        if name in self.outside:
            whole = onnx.TensorProto(dims=tensor.dims, data_type=tensor.data_type)
            whole.raw_data = bytes(self.outside[name])
            return numpy_helper.to_array(whole)
        return numpy_helper.to_array(tensor)

    def type_of(self, name: str) -> int:
        return self.whole.get(name) or self._types.get(name, 0)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A new initializer; a large one is outside of the model."""
        name = f"devscope.constant.{len(self._tensors)}"
        tensor = numpy_helper.from_array(array, name)
        if array.nbytes >= LEAST_BYTES:
            self.outside[name] = memoryview(tensor.raw_data)
            tensor.ClearField("raw_data")
        self._tensors[name] = tensor
        self.shapes[name], self._types[name] = [*array.shape], tensor.data_type
        self.model.graph.initializer.append(tensor)
        return name

    def declare(self, name: str, type_: int, shape: Sequence[int | str | None]) -> None:
        """Say what ONNX's shape inference does not find."""
        self.shapes[name], self._types[name] = [*shape], type_
        self.model.graph.value_info.append(helper.make_tensor_value_info(name, type_, shape))


_NUMBERS = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}


def tensor_of(attribute: Any) -> Any:
    """What a Constant has; None of text and of what is sparse."""
    if attribute.name == "value":
        return attribute.t
    dtype = _NUMBERS.get(attribute.name)
    return dtype and numpy_helper.from_array(np.array(helper.get_attribute_value(attribute), dtype))


class Unknown(Refused):
    """A rank or an element type that is not known yet: it may be, when more nodes are written out."""


class Writer:
    """Writes the nodes that stand for one."""

    def __init__(self, graph: Graph, node: Any, opset: int) -> None:
        self.graph, self.node, self.opset = graph, node, opset
        self.nodes: list[Any] = []
        self.like = 0
        """Which operand says what type it computes with."""
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def attr(self, name: str, default: Any = None) -> Any:
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else found

    def has(self, number: int) -> bool:
        return number < len(self.node.input) and self.node.input[number] != ""

    def __getitem__(self, number: int) -> str:
        return self.node.input[number]

    def data(self, number: int) -> Any:
        """The elements of an operand; None where it is computed."""
        return self.graph.data(self.node.input[number]) if self.has(number) else None

    def rank(self, number: int) -> int:
        """Raises `Refused`."""
        found = self.graph.shapes.get(self.node.input[number])
        if found is None:
            raise Unknown(f"{self.node.op_type} of shapes known at run time only, of unknown rank")
        return len(found)

    def shape(self, number: int) -> list[int | str | None]:
        """Raises `Unknown`."""
        found = self.graph.shapes.get(self.node.input[number])
        if found is None:
            raise Unknown(f"{self.node.op_type} of unknown rank")
        return found

    def type(self) -> int:
        """Of what it computes with. Raises `Unknown`."""
        name = self.node.input[self.like]
        found = TensorProto.FLOAT if name in self.graph.whole else self.graph.type_of(name)
        if not found:
            raise Unknown(f"{self.node.op_type} of elements of unknown type")
        return found

    @property
    def dtype(self) -> Any:
        return helper.tensor_dtype_to_np_dtype(self.type())

    def wants(self, number: int) -> bool:
        """Whether the node has this result."""
        return number < len(self.node.output) and self.node.output[number] != ""

    def op(self, kind: str, *inputs: str, result: int | None = None, **attributes: Any) -> str:
        """A node, and the name of its result; ``result``: which one of the node's it is."""
        count = len(self.nodes)
        name = f"{self.node.name}.{count}" if result is None else self.node.output[result]
        self._add(helper.make_node(kind, inputs, [name], f"{self.node.name}.{count}", **attributes))
        return name

    def _add(self, node: Any) -> None:
        """With what the node says about its layer and its device."""
        node.metadata_props.extend(self.node.metadata_props)
        node.device_configurations.extend(self.node.device_configurations)
        self.nodes.append(node)

    def several(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """A node with ``count`` results, and their names."""
        name = f"{self.node.name}.{len(self.nodes)}"
        names = [f"{name}:{number}" for number in range(count)]
        self._add(helper.make_node(kind, inputs, names, name, **attributes))
        return names

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        return self.graph.constant(np.asarray(array, dtype))

    def number(self, value: Any) -> str:
        """A constant of the type of what it computes with. Raises `Unknown`."""
        return self.constant(value, self.dtype)

    def mean(self, x: str, axes: Sequence[int]) -> str:
        return self.reduced("ReduceMean", x, axes, keepdims=1)

    def sum(self, x: str, axes: Sequence[int]) -> str:
        """Along axes, which go."""
        return self.reduced("ReduceSum", x, axes)

    def reduced(self, kind: str, x: str, axes: Sequence[int], keepdims: int = 0) -> str:
        """Axes are an operand of sums since opset 13, of other reductions since 18."""
        if self.opset < (13 if kind == "ReduceSum" else 18):
            return self.op(kind, x, axes=axes, keepdims=keepdims)
        return self.op(kind, x, self.constant(axes, np.int64), keepdims=keepdims)

    def range(self, count: str) -> str:
        """The numbers, i64, below a scalar."""
        return self.op("Range", self.constant(0, np.int64), count, self.constant(1, np.int64))

    def reshaped(self, number: int, *shape: int) -> str:
        """An operand; of a constant, another one."""
        found = self.data(number)
        if found is None:
            return self.reshape(self[number], *shape)
        return self[number] if found.shape == shape else self.graph.constant(np.reshape(found, shape))

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def vector(self, *sizes: int | str) -> str:
        """Of sizes, of which some are scalars that are computed."""
        parts = [self.constant([one], np.int64) if isinstance(one, int) else self.reshape(one, 1) for one in sizes]
        return self.op("Concat", *parts, axis=0)

    def shaped(self, x: str, *sizes: int | str) -> str:
        """Of these sizes: from one dimension, since torch-mlir takes some of several that are put together to be 1."""
        return self.op("Reshape", self.reshape(x, -1), self.vector(*sizes))

    def unsqueeze(self, x: str, *axes: int, kind: str = "Unsqueeze") -> str:
        if self.opset < 13:
            return self.op(kind, x, axes=axes)
        return self.op(kind, x, self.constant(axes, np.int64))

    def squeeze(self, x: str, *axes: int) -> str:
        return self.unsqueeze(x, *axes, kind="Squeeze")

    def part(self, x: str, axis: int, start: int, end: int) -> str:
        """``x[start:end]`` along an axis."""
        if self.opset < 10:
            return self.op("Slice", x, axes=[axis], starts=[start], ends=[end])
        given = [self.constant([number], np.int64) for number in (start, end, axis)]
        return self.op("Slice", x, *given)

    def to(self, x: str, dtype: Any) -> str:
        return self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def extent(self, x: str, axis: int) -> str:
        """A scalar."""
        return self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64), axis=0)


Rewrite = Callable[[Writer], None]
REWRITES: dict[str, Rewrite] = {}
CONTRIBUTED: dict[str, Rewrite] = {}
"""Operators of onnxruntime's own: see `contributed`."""
LEARNED: dict[str, Rewrite] = {}
"""Operators of the domain ``ai.onnx.ml``: see `learned`."""


def _registers(table: dict[str, Rewrite]) -> Callable[..., Callable[[Rewrite], Rewrite]]:
    def of(*kinds: str) -> Callable[[Rewrite], Rewrite]:
        def register(rewrite: Rewrite) -> Rewrite:
            table.update(dict.fromkeys(kinds, rewrite))
            return rewrite

        return register

    return of


rewrites = _registers(REWRITES)
"""Registers what rewrites nodes of these operators."""
contributes = _registers(CONTRIBUTED)
"""Registers what writes out nodes of these operators of the domain ``com.microsoft``."""
learned = _registers(LEARNED)
"""Registers what writes out nodes of these operators of the domain ``ai.onnx.ml``."""
