"""Decompositions of what is solved with matrices of known, small size: a step for each of their columns.

Where PyTorch raises an error, since a matrix is singular or not positive definite, results are infinities or NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_LARGEST = 64
"""Columns: each is some ten operations."""


def _is_small(a: _Tensor) -> bool:
    size: Any = a.shape[-1]
    return isinstance(size, int) and size <= _LARGEST and a.dtype.is_floating_point


def _solved(a: _Tensor, b: _Tensor) -> _Tensor:
    """x of ``a @ x == b``, by Gauss and Jordan with the largest pivot of each column."""
    size: Any = a.shape[-1]
    outer = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    both = torch.cat([a.expand(*outer, *a.shape[-2:]), b.expand(*outer, *b.shape[-2:])], -1)
    rows = torch.arange(size)
    for k in range(size):
        best = torch.where(rows >= k, both[..., k].abs(), -1.0).argmax(-1, keepdim=True)
        is_best = (rows == best)[..., None]
        pivot = torch.where(is_best, both, 0.0).sum(-2, keepdim=True)
        both = torch.where(is_best, both[..., k : k + 1, :], both)  # they change places
        pivot = pivot / pivot[..., k : k + 1]
        both = torch.where((rows == k)[:, None], pivot, both - both[..., k : k + 1] * pivot)
    return both[..., size:]


def _solve(a: _Tensor, b: _Tensor, *, left: bool = True) -> Any:
    if not _is_small(a):
        return NotImplemented
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    if is_vector:
        return _solved(a, b[..., None])[..., 0]
    return _solved(a, b) if left else _solved(a.mT, b.mT).mT


def _solve_ex(a: _Tensor, b: _Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    found = _solve(a, b, left=left)
    return found if found is NotImplemented else (found, _no_errors(a))


def _inverse(a: _Tensor) -> Any:
    return _solved(a, torch.eye(a.shape[-1], dtype=a.dtype)) if _is_small(a) else NotImplemented


def _inverse_ex(a: _Tensor, *, check_errors: bool = False) -> Any:
    found = _inverse(a)
    return found if found is NotImplemented else (found, _no_errors(a))


def _cholesky(a: _Tensor, *, upper: bool = False) -> Any:
    if not _is_small(a):
        return NotImplemented
    a = a.mT if upper else a  # only that half is looked at
    size: Any = a.shape[-1]
    numbers, found = torch.arange(size), torch.zeros_like(a)
    for k in range(size):
        rest = a[..., k] - (found * found[..., k : k + 1, :]).sum(-1)
        column = torch.where(numbers >= k, rest / rest[..., k : k + 1].sqrt(), 0.0)
        found = torch.where(numbers == k, column[..., None], found)
    return found.mT if upper else found


def _cholesky_ex(a: _Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    found = _cholesky(a, upper=upper)
    return found if found is NotImplemented else (found, _no_errors(a))


def _no_errors(a: _Tensor) -> _Tensor:
    return torch.zeros(a.shape[:-2], dtype=torch.int32)


TABLE[aten.linalg_solve.default] = _solve
TABLE[aten.linalg_solve_ex.default] = _solve_ex
TABLE[aten.linalg_inv.default] = TABLE[aten.inverse.default] = _inverse
TABLE[aten.linalg_inv_ex.default] = _inverse_ex
TABLE[aten.linalg_cholesky.default] = _cholesky
TABLE[aten.linalg_cholesky_ex.default] = _cholesky_ex
