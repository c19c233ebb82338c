"""Sequences and optional values whose elements are known become tensors before a model is imported.

Exporters write them for chunks, splits and lists; what is left of them afterwards is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_KINDS = frozenset(
    [
        *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength"),
        *("SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement"),
    ]
)


class _Unknown(Exception):
    """Elements, or a place among them, that are known at run time only."""


def without_sequences(model: Any) -> Any:
    """A model without the operators of `_KINDS` in its graph; as it is, where one of them cannot be replaced.

    Shapes have been inferred: the number of pieces of a split is the extent of a dimension.
    """
    if not any(node.op_type in _KINDS for node in model.graph.node):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    try:
        nodes = _Elements(model).nodes(model.graph.node)
    except _Unknown:
        return model
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    tensors = [info for info in result.graph.value_info if info.type.HasField("tensor_type")]
    del result.graph.value_info[:]
    result.graph.value_info.extend(tensors)
    return result


class _Elements:
    def __init__(self, model: Any) -> None:
        self._opset = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
        graph = model.graph
        self._shapes = {
            info.name: [dim.dim_value or None for dim in info.type.tensor_type.shape.dim]
            for info in [*graph.input, *graph.value_info]
            if info.type.tensor_type.HasField("shape")
        }
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._shapes |= {name: [*tensor.dims] for name, tensor in self._constants.items()}
        self._lists: dict[str, list[str]] = {}
        """The elements of sequences, by name; of optional values one or none."""
        self._optional = {info.name for info in graph.input if info.type.HasField("optional_type")}
        self._made: list[Any] = []

    def nodes(self, nodes: Sequence[Any]) -> list[Any]:
        """What stands for them. Raises _Unknown."""
        for node in nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
            if node.op_type == "Identity" and node.input[0] in self._lists:
                self._lists[node.output[0]] = self._lists[node.input[0]]
            elif node.op_type in _KINDS and node.domain in ("", "ai.onnx"):
                getattr(self, f"_{node.op_type}")(node, {a.name: a for a in node.attribute})
            elif any(name in self._lists for name in node.input):
                raise _Unknown
            else:
                self._made.append(node)
        return self._made

    def _elements(self, name: str) -> list[str]:
        if name not in self._lists:
            raise _Unknown
        return self._lists[name]

    def _integers(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self._constants:
            raise _Unknown
        return numpy_helper.to_array(self._constants[name])

    def _place(self, node: Any, number: int, count: int) -> int | None:
        """Where in a sequence of ``count`` elements; None where the node does not say."""
        if number >= len(node.input) or not node.input[number]:
            return None
        place = int(self._integers(node.input[number]))
        if not -count <= place < max(count, 1):
            raise _Unknown
        return place % count if count else 0

    def _add(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], node: Any, **attributes: Any) -> None:
        name = f"{node.name}.{len(self._made)}"
        self._made.append(helper.make_node(kind, inputs, outputs, name, **attributes))

    def _constant(self, value: Any, name: str, node: Any) -> str:
        self._add("Constant", [], [name], node, value=numpy_helper.from_array(np.asarray(value), name))
        return name

    def _reshaped(self, kind: str, x: str, axis: int, result: str, node: Any) -> None:
        """Squeeze or Unsqueeze, whose axes were an attribute before version 13."""
        if self._opset < 13:
            self._add(kind, [x], [result], node, axes=[axis])
        else:
            axes = self._constant(np.array([axis]), f"{result}.axes", node)
            self._add(kind, [x, axes], [result], node)

    def _SequenceConstruct(self, node: Any, _: Any) -> None:
        self._lists[node.output[0]] = [*node.input]

    def _SequenceEmpty(self, node: Any, _: Any) -> None:
        self._lists[node.output[0]] = []

    def _SequenceInsert(self, node: Any, _: Any) -> None:
        elements = [*self._elements(node.input[0])]
        place = self._place(node, 2, len(elements) + 1)
        elements.insert(len(elements) if place is None else place, node.input[1])
        self._lists[node.output[0]] = elements

    def _SequenceErase(self, node: Any, _: Any) -> None:
        elements = [*self._elements(node.input[0])]
        place = self._place(node, 1, len(elements))
        del elements[-1 if place is None else place]
        self._lists[node.output[0]] = elements

    def _SequenceAt(self, node: Any, _: Any) -> None:
        elements = self._elements(node.input[0])
        place = self._place(node, 1, len(elements))
        if place is None or not elements:
            raise _Unknown
        self._add("Identity", [elements[place]], node.output, node)

    def _SequenceLength(self, node: Any, _: Any) -> None:
        count = len(self._elements(node.input[0]))
        self._constants[node.output[0]] = numpy_helper.from_array(np.array(count))
        self._constant(np.array(count), node.output[0], node)

    def _SplitToSequence(self, node: Any, attributes: Any) -> None:
        shape = self._shapes.get(node.input[0])
        if shape is None:
            raise _Unknown
        axis = (attributes["axis"].i if "axis" in attributes else 0) % len(shape)
        has_sizes = len(node.input) > 1 and node.input[1] != ""
        sizes = self._integers(node.input[1]) if has_sizes else np.array(1)
        if sizes.ndim == 0:
            extent = shape[axis]
            if extent is None:
                raise _Unknown
            sizes = np.array([min(int(sizes), extent - start) for start in range(0, extent, int(sizes))])
        pieces = [f"{node.output[0]}.{number}" for number in range(len(sizes))]
        squeezed = not has_sizes and "keepdims" in attributes and not attributes["keepdims"].i
        wide = [f"{piece}.wide" for piece in pieces] if squeezed else pieces
        if self._opset < 13:
            self._add("Split", node.input[:1], wide, node, axis=axis, split=sizes.tolist())
        else:
            name = self._constant(sizes.astype(np.int64), f"{node.output[0]}.sizes", node)
            self._add("Split", [node.input[0], name], wide, node, axis=axis)
        for given, piece in zip(wide, pieces, strict=True):
            if squeezed:
                self._reshaped("Squeeze", given, axis, piece, node)
        self._lists[node.output[0]] = pieces

    def _ConcatFromSequence(self, node: Any, attributes: Any) -> None:
        elements, axis = self._elements(node.input[0]), attributes["axis"].i
        if "new_axis" in attributes and attributes["new_axis"].i:
            wide = [f"{node.output[0]}.{number}" for number in range(len(elements))]
            for element, name in zip(elements, wide, strict=True):
                self._reshaped("Unsqueeze", element, axis, name, node)
            elements = wide
        self._add("Concat", elements, node.output, node, axis=axis)

    def _Optional(self, node: Any, _: Any) -> None:
        if node.input and node.input[0] in self._lists:
            raise _Unknown  # an optional sequence
        self._lists[node.output[0]] = [*node.input]

    def _OptionalGetElement(self, node: Any, _: Any) -> None:
        if node.input[0] in self._optional:
            raise _Unknown
        elements = self._lists.get(node.input[0], [node.input[0]])
        if len(elements) != 1:
            raise _Unknown
        self._add("Identity", elements, node.output, node)

    def _OptionalHasElement(self, node: Any, _: Any) -> None:
        given = node.input[0] if node.input else ""
        if given in self._optional:
            raise _Unknown
        self._constant(np.array(bool(self._lists.get(given, [given] if given else []))), node.output[0], node)
