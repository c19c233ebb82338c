"""Random numbers of a graph of ``torch.compile``: PyTorch draws them before a call, they are arguments of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

aten: Any = torch.ops.aten
_DRAWN = frozenset(
    {
        aten.bernoulli.p,
        torch.ops.prims.normal.default,
        *(
            getattr(getattr(aten, name), overload)
            for name in (
                "cauchy",
                "exponential",
                "geometric",
                "log_normal",
                "normal_functional",
                "rand",
                "rand_like",
                "randint",
                "randint_like",
                "randn",
                "randn_like",
                "random",
                "randperm",
                "uniform",
            )
            for overload in getattr(aten, name).overloads()
        ),
    }
)
"""Of the tensors that they are given, the sizes and the type count alone."""


def take_draws(graph: Any) -> list[Callable[[Sequence[Any]], Any]]:
    """Make what is drawn in ``graph`` arguments, its last ones; functions of the others that draw it, in order."""
    arguments = list(graph.find_nodes(op="placeholder"))
    sizes = _sizes(arguments)
    draws: list[Callable[[Sequence[Any]], Any]] = []
    for node in list(graph.nodes):
        if node.target not in _DRAWN or not _symbols(node) <= sizes.keys():
            continue
        draws.append(_draw(node, sizes))
        with graph.inserting_after(arguments[-1]) if arguments else graph.inserting_before():
            drawn = graph.placeholder(f"drawn_{node.name}")
        arguments.append(drawn)
        drawn.meta.update(node.meta)
        node.replace_all_uses_with(drawn)
        graph.erase_node(node)
    return draws


def _sizes(arguments: list[Any]) -> dict[Any, tuple[int, int | None]]:
    """Where symbols are to be found: the number of an argument, and the dimension of one that is a tensor."""
    found: dict[Any, tuple[int, int | None]] = {}
    for number, node in enumerate(arguments):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            found.setdefault(value.node.expr, (number, None))
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt):
                found.setdefault(size.node.expr, (number, dim))
    return {symbol: place for symbol, place in found.items() if symbol.is_Symbol}


def _values(node: Any) -> tuple[Any, Any]:
    """Arguments of a node, with what PyTorch knows of those that are computed in their places."""
    return torch.fx.map_arg((node.args, node.kwargs), lambda given: given.meta.get("val"))  # pyright: ignore


def _symbols(node: Any) -> set[Any]:
    found: set[Any] = set()
    for leaf in pytree.tree_leaves(_values(node)):
        for size in leaf.shape if isinstance(leaf, torch.Tensor) else [leaf]:
            if isinstance(size, torch.SymInt):
                found |= size.node.expr.free_symbols
    return found


def _draw(node: Any, sizes: Mapping[Any, tuple[int, int | None]]) -> Callable[[Sequence[Any]], Any]:
    operation, needed = node.target, _symbols(node)
    values = _values(node)

    def draw(arguments: Sequence[Any]) -> Any:
        known = {}
        for symbol in needed:
            number, dim = sizes[symbol]
            known[symbol] = arguments[number] if dim is None else arguments[number].shape[dim]

        def real(value: Any) -> Any:
            if isinstance(value, torch.SymInt):
                return int(value.node.expr.xreplace(known))
            if isinstance(value, torch.Tensor):
                return torch.empty([real(size) for size in value.shape], dtype=value.dtype)
            return value

        arguments_, named = pytree.tree_map(real, values)
        return operation(*arguments_, **named)

    return draw
