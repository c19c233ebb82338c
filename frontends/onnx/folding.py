"""What is known of a graph's values without their operands: constants, and sizes among those of any size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from devscope.frontends.onnx.builder import Builder
from devscope.frontends.onnx.graph import Scope, array_of, constant_of, evaluated
from devscope.frontends.onnx.inference import inferred
from devscope.frontends.onnx.prepare import all_nodes


def folded(model: Any, outside: Collection[str]) -> Any:
    """A model in which nodes of constant operands are initializers, and known branches stand for their If."""
    folding = _Folding(model, outside)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    nodes = [*folding.nodes(model.graph.node)]
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    folding.put_constants(result.graph)
    return inferred(result)


def with_known_branches(model: Any, outside: Collection[str]) -> Any:
    """A model without each If whose condition is known: as PyTorch's exporter has them, which ask for ranks and for
    sizes. What they give says what the next ask for."""
    while any(node.op_type == "If" for node in model.graph.node):
        before = sum(node.op_type == "If" for node in all_nodes(model.graph))
        less = folded(model, outside)
        if sum(node.op_type == "If" for node in all_nodes(less.graph)) == before:
            return model
        model = less
    return model


_UNKNOWN = -(1 << 61)
"""Stands for a size that is not known, where sizes are moved."""

_SOME = np.zeros(1)
_MOVES = frozenset(("Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"))


class _Folding:
    def __init__(self, model: Any, outside: Collection[str]) -> None:
        opsets = {"" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import}
        self._scope = Scope(Builder(), opsets, {})
        self._sizes: dict[str, np.ndarray[Any, Any]] = {}
        """Sizes of which some are known, by the names of what they are computed as."""
        self._dims: dict[str, list[int]] = {}
        self._kept: set[str] = set()
        self._made_by: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._branches = 0
        self._outside = frozenset(outside)
        self._enter(model.graph)

    @property
    def _known(self) -> dict[str, np.ndarray[Any, Any]]:
        return self._scope.known

    def _enter(self, graph: Any) -> None:
        infos = [*graph.input, *graph.value_info, *graph.output]
        self._scope.declare(infos)
        self._kept.update(output.name for output in graph.output)
        for info in infos:
            type_ = info.type.tensor_type
            if type_.HasField("shape"):
                self._dims[info.name] = [
                    dim.dim_value if dim.HasField("dim_value") else _UNKNOWN for dim in type_.shape.dim
                ]
        for tensor in graph.initializer:
            if tensor.name not in self._outside:
                self._known[tensor.name] = array_of(tensor)
        self._taken.update(one.name for one in (*graph.input, *graph.initializer))

    def nodes(self, nodes: Sequence[Any]) -> Iterator[Any]:
        """Those that are left."""
        for node in nodes:
            self._made_by |= dict.fromkeys(node.output, node)
            if node.op_type == "If" and node.input[0] in self._known:
                yield from self._branch(node, bool(np.asarray(self._known[node.input[0]]).reshape(-1)[0]))
            elif node.op_type == "If" and self._squeezes(node):
                yield from self._branch(node, condition=True)
            elif self._kept.intersection(node.output) or not (self._scope.fold(node) or self._fold_sizes(node)):
                self._taken.update(node.output)
                yield self._left(node)

    def _branch(self, node: Any, condition: bool) -> Iterator[Any]:
        """The nodes of the one that is taken, in names that are free."""
        name = "then_branch" if condition else "else_branch"
        branch = onnx.GraphProto()
        branch.CopyFrom(next(one.g for one in node.attribute if one.name == name))
        made = [output for inner in branch.node for output in inner.output if output]
        made += [tensor.name for tensor in branch.initializer]
        self._branches += 1
        _rename(branch, {one: f"{one}.branch{self._branches}" for one in made if one in self._taken})
        for number, inner in enumerate(branch.node):
            inner.name = inner.name or f"{node.name}.{inner.op_type}_{number}"
        kept = set(self._kept)
        self._enter(branch)
        self._kept = kept
        yield from self.nodes(branch.node)
        for inner, outer in zip(branch.output, node.output, strict=True):
            identity = helper.make_node("Identity", [inner.name], [outer], f"{node.name}.{outer}")
            yield from self.nodes([identity])

    def _squeezes(self, node: Any) -> bool:
        """Whether it is how PyTorch's exporter writes ``x.squeeze(axis)`` of a size that is not known: x, unless the
        size is 1. The rank is of a program, so that the size has to be: the Squeeze demands it.
        """
        graphs = {one.name: one.g for one in node.attribute}
        then, other = ([*graphs[name].node] for name in ("then_branch", "else_branch"))
        own = {one.output[0]: constant_of(one) for one in then if one.op_type == "Constant"}
        squeeze = then[-1]
        if [one.op_type for one in (*then[len(own) :], *other)] != ["Squeeze", "Identity"]:
            return False
        axes = [one.ints for one in squeeze.attribute] or [{**self._known, **own}.get(squeeze.input[-1])]
        equal = self._made_as("Equal", node.input[0])
        gather = equal and self._made_as("Gather", equal.input[0])
        shape = gather and self._made_as("Shape", gather.input[0])
        if not shape or shape.attribute or shape.input[0] != squeeze.input[0] or axes[0] is None:
            return False
        return [*axes[0]] == self._numbers(gather.input[1]) and self._numbers(equal.input[1]) == [1]

    def _made_as(self, kind: str, name: str) -> Any:
        found = self._made_by.get(name)
        return found if found is not None and found.op_type == kind else None

    def _numbers(self, name: str) -> list[int]:
        return [int(one) for one in np.ravel(self._known.get(name, ()))]

    def _left(self, node: Any) -> Any:
        """A node that is not folded."""
        if node.op_type == "If":
            return self._with_branches(node)
        if node.op_type != "Concat":
            return node
        parts = [name for name in node.input if self._known.get(name, _SOME).shape != (0,)]
        if not parts or len(parts) == len(node.input):
            return node
        result = onnx.NodeProto()  # without what is empty, which torch-mlir does not survive
        result.CopyFrom(node)
        del result.input[:]
        result.input.extend(parts)
        return result

    def _with_branches(self, node: Any) -> Any:
        """With less in its branches."""
        result = onnx.NodeProto()
        result.CopyFrom(node)
        for attribute in result.attribute:
            before = (self._scope.known, self._scope.shapes, self._sizes, self._dims, self._kept)
            self._scope.known, self._scope.shapes = dict(before[0]), dict(before[1])
            self._sizes, self._dims, self._kept = dict(before[2]), dict(before[3]), set(before[4])
            self._enter(attribute.g)
            nodes = [*self.nodes(attribute.g.node)]
            del attribute.g.node[:]
            attribute.g.node.extend(nodes)
            self.put_constants(attribute.g, before[0])
            self._scope.known, self._scope.shapes, self._sizes, self._dims, self._kept = before
        return result

    def put_constants(self, graph: Any, outer: Collection[str] = ()) -> None:
        """Those that nodes of a graph use, but for those that are ``outer``."""
        present = {tensor.name for tensor in graph.initializer}
        used = {name for node in all_nodes(graph) for name in node.input} | {one.name for one in graph.output}
        for name, array in self._known.items():
            if name in used and name not in present and name not in outer:
                graph.initializer.append(numpy_helper.from_array(array, name))

    def _fold_sizes(self, node: Any) -> bool:
        """Compute sizes of a value of which not all are known: whether those that the node gives are."""
        if node.domain not in ("", "ai.onnx"):
            return False
        if node.op_type == "Shape":
            dims = self._dims.get(node.input[0])
            if dims is None:
                return False
            given = {a.name: a.i for a in node.attribute}
            return self._hold_sizes(node.output[0], np.array(dims[slice(given.get("start", 0), given.get("end"))]))
        if node.op_type not in _MOVES:
            return False
        moved = node.input if node.op_type == "Concat" else node.input[:1]
        given = {name: self._sizes[name] for name in moved if name in self._sizes}
        known = {name: self._known[name] for name in node.input if name in self._known}
        if not given or any(name and name not in given and name not in known for name in node.input):
            return False
        found = evaluated(node, known | given, self._scope.opsets)
        return found is not None and self._hold_sizes(node.output[0], found[node.output[0]])

    def _hold_sizes(self, name: str, sizes: np.ndarray[Any, Any]) -> bool:
        if np.any(sizes == _UNKNOWN):
            self._sizes[name] = sizes
            return False
        self._scope.hold(name, sizes.astype(np.int64))
        return True


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Give values other names, in graphs inside of the graph, too."""
    if not names:
        return
    for info in (*graph.value_info, *graph.output, *graph.initializer):
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        for part in (node.input, node.output):
            renamed = [names.get(name, name) for name in part]
            del part[:]
            part.extend(renamed)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _rename(attribute.g, names)
