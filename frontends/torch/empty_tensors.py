"""Operations on tensors that have no elements, by what they make: torch-mlir's passes divide by their sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import map_arg

aten: Any = torch.ops.aten
_WRITES = {
    aten.index_put.default: 1,
    aten.index_add.default: 2,
    aten.index_copy.default: 2,
    aten.scatter.src: 2,
    aten.scatter.value: 2,
    aten.scatter_add.default: 2,
    aten.scatter_reduce.two: 2,
}
"""What is written where: the number of the argument that says where, a tensor or a list of them."""


def fold_empty_tensors(graph: Any) -> None:
    """Put constants for what has no elements, or is of nothing that has, and leave out writes to no place."""
    for node in [node for node in graph.nodes if node.op == "call_function"]:
        shape = _shape(node)
        if shape is None or not all(isinstance(size, int) for size in shape):
            continue
        new = None
        if node.target in _WRITES and _is_empty(node.args[_WRITES[node.target]]):
            new = node.args[0]
        elif 0 in shape:
            new = _made(graph, node, aten.empty.memory_format)
        elif node.all_input_nodes and all(map(_is_empty, node.all_input_nodes)):
            found = _of_empty_tensors(node)
            new = None if found is None else _made(graph, node, aten.full.default, found)
        if new is not None:
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def _made(graph: Any, node: Any, operation: Any, *value: Any) -> Any:
    """A complex one of its parts: torch-mlir makes others of another type."""
    meta = {key: kept for key, kept in node.meta.items() if key != "tensor_meta"}
    wanted = meta["val"]
    with graph.inserting_before(node):

        def made(*part: Any) -> Any:
            new = graph.call_function(operation, (list(wanted.shape), *part), {"dtype": wanted.dtype.to_real()})
            new.meta.update(meta, val=wanted.real if wanted.is_complex() else wanted)
            return new

        if not wanted.is_complex():
            return made(*value)
        parts = [made(part) for number in map(complex, value) for part in (number.real, number.imag)]
        new = graph.call_function(aten.complex.default, tuple(parts or (made(), made())))
    new.meta.update(meta)
    return new


def _of_empty_tensors(node: Any) -> Any:
    """The number that all elements of the result are, if there is one."""

    def empty(one: Any) -> Any:
        return torch.empty(one.meta["val"].shape, dtype=one.meta["val"].dtype)

    try:
        found = node.target(*map_arg(node.args, empty), **map_arg(node.kwargs, empty))
        first = found.reshape(-1)[0]
        return first.item() if bool(((found == first) | (found != found) & (first != first)).all()) else None
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return None


def _is_empty(node: Any) -> bool:
    if isinstance(node, list | tuple):
        return any(map(_is_empty, (one for one in node if one is not None)))
    return any(isinstance(size, int) and size == 0 for size in _shape(node) or ())


def _shape(node: Any) -> Any:
    value = node.meta.get("val")
    return value.shape if isinstance(value, torch.Tensor) else None
