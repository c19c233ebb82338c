"""Which operations PyTorch decomposes before they are imported: torch-mlir's table, and what it lacks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from devscope.frontends.torch import (
    array_decompositions,
    bessel_decompositions,
    byte_decompositions,
    complex_decompositions,
    convolution_decompositions,
    gradient_decompositions,
    incomplete_gamma,
    matrix_decompositions,
    narrow_decompositions,
    orthogonal_polynomials,
    own_decompositions,
    placing_decompositions,
    quantised_decompositions,
    sampling_decompositions,
    scalar_decompositions,
    special_decompositions,
    window_decompositions,
)

_Table = dict[Any, Callable[..., Any]]
_OWN = tuple(
    part.TABLE
    for part in (
        own_decompositions,
        array_decompositions,
        bessel_decompositions,
        orthogonal_polynomials,
        complex_decompositions,
        convolution_decompositions,
        gradient_decompositions,
        incomplete_gamma,
        matrix_decompositions,
        placing_decompositions,
        sampling_decompositions,
        byte_decompositions,
        scalar_decompositions,
        special_decompositions,
        window_decompositions,
        narrow_decompositions,
    )
)
_PREFERRED = ("aten.fft_", "aten.stft", "aten.istft", "aten.linalg_norm", "aten.linalg_matrix_norm")
"""What torch-mlir's table leaves to its lowerings, which lack it."""
_LIFT: Any = torch.ops.aten.lift_fresh.default
"""Of constants: PyTorch puts a copy in its place as it traces, and ``torch.compile`` cannot decompose it."""


@cache
def table() -> _Table:
    """torch-mlir's, which leaves alone what its own lowerings are better at, with ours in front of it.

    Besides, all that its dialect does not have and PyTorch can decompose.
    """
    core = _core()
    unknown = {op: function for op, function in _all().items() if isinstance(op, OpOverload) and not _is_known(op)}
    preferred = {op: core[op] for op in core if str(op).startswith(_PREFERRED)}
    found = unknown | preferred | dict(get_decomposition_table())
    del found[_LIFT]
    for own in _OWN:
        found |= {op: _first(function, found.get(op)) for op, function in own.items()}
    return found


def _first(one: Callable[..., Any], other: Callable[..., Any] | None) -> Callable[..., Any]:
    """``one``, and what it does not implement by ``other``."""
    if other is None:
        return one

    def decompose(*arguments: Any, **named: Any) -> Any:
        found = one(*arguments, **named)
        return other(*arguments, **named) if found is NotImplemented else found

    return decompose


def decomposed(exported: Any, further: set[Any]) -> Any:
    """``exported`` in terms of what torch-mlir's dialect has; those of ``further`` are decomposed, too."""
    all_tables = table() | quantised_decompositions.table() | {op: _all()[op] for op in further}
    return exported.run_decompositions(all_tables)


def more(program: Any, name: str, known: set[Any]) -> set[Any]:
    """The overloads in ``program`` of the operation ``aten.name`` that have decompositions not in ``known``."""
    return {
        op
        for op in _overloads(program)
        if name in (str(op), str(op).rpartition(".")[0]) and op in _all() and op not in known
    }


def _overloads(program: Any) -> set[Any]:
    nodes = program.graph.nodes
    return {node.target for node in nodes if node.op == "call_function" and isinstance(node.target, OpOverload)}


def _is_known(op: Any) -> bool:
    """Whether torch-mlir's dialect has the operation."""
    name = f"torch.{str(op).removesuffix('.default')}"
    return _context().is_registered_operation(name)


@cache
def _context() -> Any:
    context = importlib.import_module("torch_mlir.ir").Context()
    importlib.import_module("torch_mlir._mlir_libs._torchMlir").register_dialect(context)
    return context


@cache
def _all() -> _Table:
    """What PyTorch can decompose, and we do not."""
    own = {op for table in _OWN for op in table}
    return {op: how for op, how in {**decomposition_table, **_core()}.items() if op not in own}


@cache
def _core() -> _Table:
    """PyTorch's, which it looks for among all of its operations."""
    return dict(core_aten_decompositions().items())
