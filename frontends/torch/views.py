"""Views in a form that torch-mlir lowers well: of several dimensions of unknown size, of complex numbers.

Its lowering of ``aten.view`` takes one dimension of unknown size for the whole of what is joined, and others for 1
(``ConvertAtenViewOp`` in TorchToLinalg/DataMovement.cpp): ``[?, ?, 8] -> [?, 8]`` becomes ``[?, 1, 8]``; and in
``[?, 16] -> [?, 8]`` it finds that 16 is not 8. Its lowering of ``prims.collapse`` does not have to guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten: Any = torch.ops.aten
_COLLAPSE: Any = torch.ops.prims.collapse.default
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


class _Group(NamedTuple):
    """Dimensions of a view's source, from ``first`` on, that have the elements of some of its result."""

    first: int
    source: Sequence[Any]
    result: Sequence[Any]

    @property
    def is_guessed(self) -> bool:
        unknown = sum(not isinstance(size, int) for size in self.source)
        return len(self.source) > 1 and (unknown > 1 or (unknown == 1 and len(self.result) > 1))


def flatten_joined_dimensions(graph: Any) -> None:
    """Put ``prims.collapse`` before views, or in their place, of whose dimensions torch-mlir would have to guess
    which are joined."""
    for node in [node for node in graph.nodes if node.op == "call_function" and node.target in _VIEWS]:
        source, result = node.args[0].meta.get("val"), node.meta.get("val")
        if not isinstance(source, torch.Tensor) or not isinstance(result, torch.Tensor):
            continue
        joined = [group for group in _groups(source.shape, result.shape) if group.is_guessed]
        value: Any = node.args[0]
        with graph.inserting_before(node):
            for group in reversed(joined):  # so that the numbers of those before stay
                shape, last = value.meta["val"].shape, group.first + len(group.source) - 1
                value = graph.call_function(_COLLAPSE, (value, group.first, last))
                value.meta.update({key: kept for key, kept in node.meta.items() if key != "tensor_meta"})
                sizes = (*shape[: group.first], math.prod(group.source), *shape[last + 1 :])
                value.meta["val"] = source.new_empty(sizes)
        if joined and _is_same(value.meta["val"].shape, result.shape):
            node.replace_all_uses_with(value)
            graph.erase_node(node)
        elif joined:
            node.args = (value, *node.args[1:])


def take_parts(graph: Any) -> None:
    """Make ``aten.real`` or ``aten.imag`` of one of the two numbers of ``aten.view_as_real``.

    torch-mlir writes both, in an array of twice as many numbers, of which every second one is read then.
    """
    for view in graph.find_nodes(op="call_function", target=aten.view_as_real.default):
        for node in list(view.users):
            last = node.target is aten.select.int and node.args[1] in (-1, view.meta["val"].dim() - 1)
            if last and node.args[2] in (0, 1):
                node.target = (aten.real.default, aten.imag.default)[node.args[2]]
                node.args = (view.args[0],)
        if not view.users:
            graph.erase_node(view)


def _is_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(statically_known_true(a == b) for a, b in zip(one, other, strict=True))


def _groups(source: Sequence[Any], result: Sequence[Any]) -> list[_Group]:
    """The least groups of dimensions that are of as many elements in both; none where that cannot be said."""
    found: list[_Group] = []
    i = j = 0
    while i < len(source) and j < len(result):
        counts = product(range(1, len(source) - i + 1), range(1, len(result) - j + 1))
        for m, n in sorted(counts, key=sum):
            if statically_known_true(math.prod(source[i : i + m]) == math.prod(result[j : j + n])):
                break
        else:
            return []
        found.append(_Group(i, source[i : i + m], result[j : j + n]))
        i, j = i + m, j + n
    return found
