"""Which operations PyTorch decomposes before they are imported: torch-mlir's table, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

_Table = dict[Any, Callable[..., Any]]


@cache
def _table() -> _Table:
    """torch-mlir's, which leaves alone what its own lowerings are better at."""
    return dict(get_decomposition_table())


def decomposed(exported: Any, further: set[Any]) -> Any:
    """``exported`` in terms of fewer operations; those of ``further`` are decomposed, too."""
    return exported.run_decompositions(_table() | {op: _all()[op] for op in further})


def more(program: Any, name: str, known: set[Any]) -> set[Any]:
    """The overloads in ``program`` of the operation ``aten.name`` that have decompositions not in ``known``."""
    found: set[Any] = set()
    for node in program.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            packet = str(node.target).rpartition(".")[0]
            if name in (packet, str(node.target)) and node.target in _all() and node.target not in known:
                found.add(node.target)
    return found


@cache
def _all() -> _Table:
    return dict(decomposition_table) | dict(core_aten_decompositions())
