"""``associative_scan`` of sizes that vary, as a ``scan``: PyTorch's recursion needs to know the length."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_leaves

_scans: Any = importlib.import_module("torch._higher_order_ops.associative_scan")
_scan: Any = importlib.import_module("torch._higher_order_ops.scan").scan
_recursive = _scans.generic_associative_scan


def _in_order(operator: Any, leaves: Sequence[torch.Tensor], dim: int = 0, additional_inputs: Any = ()) -> Any:
    """``operator`` maps a function of rows (``vmap``), which a step of a scan calls."""
    varies = any(isinstance(size, torch.SymInt) for leaf in leaves for size in leaf.shape)
    if dim or additional_inputs or not varies:
        return _recursive(operator, leaves, dim, additional_inputs)

    of_rows = inspect.getclosurevars(operator.keywords["combine_fn"]).nonlocals["func"]
    combine = functools.partial(operator, combine_fn=of_rows)

    def step(before: Any, row: Any) -> Any:
        *row, is_first = row
        made = tree_leaves(combine(*before, *row))
        found = [torch.where(is_first, one, other).contiguous() for one, other in zip(row, made, strict=True)]
        return found, [each.clone() for each in found]

    rows = [leaf.contiguous() for leaf in leaves]
    is_first = torch.arange(rows[0].shape[0]) == 0
    return _scan(step, [row[0] for row in rows], [*rows, is_first])[1]


@contextmanager
def associative_scans() -> Generator[None]:
    """While it is entered, those of sizes that vary can be traced."""
    with mock.patch.object(_scans, "generic_associative_scan", _in_order):
        yield
