"""Views that join dimensions of unknown size, in a form that torch-mlir lowers.

Its lowering of ``aten.view`` takes one dimension of unknown size for the whole of what is joined, and others for 1
(``ConvertAtenViewOp`` in TorchToLinalg/DataMovement.cpp): ``[?, ?, 8] -> [?, 8]`` becomes ``[?, 1, 8]``. Its
lowering of ``prims.collapse`` does not have to guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten: Any = torch.ops.aten
_COLLAPSE: Any = torch.ops.prims.collapse.default
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


def flatten_joined_dimensions(graph: Any) -> None:
    """Put ``prims.collapse`` before views, or in their place, that join several dimensions of unknown size."""
    views = [node for node in graph.nodes if node.op == "call_function" and node.target in _VIEWS]
    for node in views:
        source = node.args[0].meta.get("val")
        result = node.meta.get("val")
        if not isinstance(source, torch.Tensor) or not isinstance(result, torch.Tensor):
            continue
        joined = _joined(source.shape, result.shape)
        value: Any = node.args[0]
        with graph.inserting_before(node):
            for first, last in reversed(joined):  # so that the numbers of those before stay
                shown = value.meta["val"]
                value = graph.call_function(_COLLAPSE, (value, first, last))
                value.meta.update({key: kept for key, kept in node.meta.items() if key != "val"})
                size = math.prod(shown.shape[first : last + 1])
                value.meta["val"] = shown.new_empty((*shown.shape[:first], size, *shown.shape[last + 1 :]))
        if joined and len(value.meta["val"].shape) == len(result.shape):
            node.replace_all_uses_with(value)
            graph.erase_node(node)
        elif joined:
            node.args = (value, *node.args[1:])


def _joined(source: Sequence[Any], result: Sequence[Any]) -> list[tuple[int, int]]:
    """The first and last of the dimensions that become one of the result, if two of them are of unknown size.

    Nothing where it cannot be said which dimensions of the result are those of the source.
    """
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(source) and j < len(result):
        joined = _prefix(source[i:], result[j])
        if joined:
            if sum(not isinstance(size, int) for size in source[i : i + joined]) > 1:
                found.append((i, i + joined - 1))
            i, j = i + joined, j + 1
            continue
        split = _prefix(result[j:], source[i])
        if not split:
            return []
        i, j = i + 1, j + split
    return found


def _prefix(sizes: Sequence[Any], total: Any) -> int:
    """How many of the first sizes have this product; 0 for none."""
    product: Any = 1
    for count, size in enumerate(sizes, 1):
        product = product * size
        if statically_known_true(product == total):
            return count
    return 0
