"""Decompositions of what is solved with matrices, and of their factors.

With few columns, their number known, a step for each of them; else by routines (`matrix_operations`).
Where PyTorch raises an error, since a matrix is singular or not positive definite, results are infinities or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devscope.frontends.torch import matrix_operations as routines
from devscope.frontends.torch.tables import Decomposition, Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_LARGEST = 64
"""Columns: each is some ten operations."""


def _of_matrices(*overloads: Any) -> Callable[[Decomposition], Decomposition]:
    """Decorates the decomposition of ``overloads`` whose first argument is of a type that routines have."""

    def register(function: Decomposition) -> Decomposition:
        def of_any(a: _Tensor, *others: Any, **options: Any) -> Any:
            return function(a, *others, **options) if has_routines(a) else NotImplemented

        TABLE.of(*overloads)(of_any)
        return function

    return register


def has_routines(a: _Tensor) -> bool:
    return a.dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128)


def _adjoint(a: _Tensor) -> _Tensor:
    return a.mT.conj_physical() if a.is_complex() else a.mT


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


@_of_matrices(aten.linalg_solve.default)
def _solve(a: _Tensor, b: _Tensor, *, left: bool = True) -> Any:
    solved = _solved if _is_small(a) else _solved_by_routines
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    if is_vector:
        return solved(a, b[..., None])[..., 0]
    return solved(a, b) if left else solved(a.mT, b.mT).mT


def _in_batches(a: _Tensor, b: _Tensor) -> tuple[_Tensor, _Tensor]:
    outer = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*outer, *a.shape[-2:]), b.expand(*outer, *b.shape[-2:])


def _solved_by_routines(a: _Tensor, b: _Tensor) -> _Tensor:
    a, b = _in_batches(a, b)
    packed, _, order = routines.lu(a)
    return routines.solve_upper(packed.triu(), routines.solve_lower(_unit(packed), _in_order(b, order)))


def _unit(packed: _Tensor) -> _Tensor:
    """The lower factor, of ones on the diagonal."""
    rows, columns = packed.shape[-2:]
    return packed.tril(-1) + torch.eye(rows, columns, dtype=packed.dtype)


@_of_matrices(aten.linalg_lu_solve.default)
def _lu_solve(packed: _Tensor, pivots: _Tensor, b: _Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    """``pivots``: the row, counted from 1, that each in turn was exchanged with."""
    if not left:
        return _adjoint(_lu_solve(packed, pivots, _adjoint(b), adjoint=not adjoint))
    packed, b = _in_batches(packed, b)
    size: Any = packed.shape[-1]
    rows = torch.arange(size)
    pivots = pivots.to(torch.int64) - 1
    order = rows.expand(pivots.shape)
    for k in range(size):
        other = pivots[..., k : k + 1]
        one, moved = order[..., k : k + 1], order.gather(-1, other)
        order = torch.where(rows == k, moved, torch.where(rows == other, one, order))
    if adjoint:
        lower = _triangular(_adjoint(packed.triu()), b, upper=False)
        return _in_order(_triangular(_adjoint(_unit(packed)), lower, upper=True), order.argsort(-1))
    return _triangular(packed.triu(), _triangular(_unit(packed), _in_order(b, order), upper=False), upper=True)


def _in_order(b: _Tensor, order: _Tensor) -> _Tensor:
    """The rows of matrices in another order."""
    return b.gather(-2, order.to(torch.int64)[..., None].expand([*b.shape[:-2], -1, b.shape[-1]]))


@_of_matrices(aten.linalg_solve_ex.default)
def _solve_ex(a: _Tensor, b: _Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    return _solve(a, b, left=left), _no_errors(a)


@_of_matrices(aten.linalg_inv.default, aten.inverse.default)
def _inverse(a: _Tensor) -> Any:
    solved = _solved if _is_small(a) else _solved_by_routines
    return solved(a, torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape))


@_of_matrices(aten.linalg_inv_ex.default)
def _inverse_ex(a: _Tensor, *, check_errors: bool = False) -> Any:
    return _inverse(a), _no_errors(a)


@_of_matrices(aten.linalg_cholesky.default)
def _cholesky(a: _Tensor, *, upper: bool = False) -> Any:
    a = _adjoint(a) if upper else a  # only that half is looked at
    if not _is_small(a):
        found = routines.cholesky(a)
        return _adjoint(found) if upper else found
    size: Any = a.shape[-1]
    numbers, found = torch.arange(size), torch.zeros_like(a)
    for k in range(size):
        rest = a[..., k] - (found * found[..., k : k + 1, :]).sum(-1)
        column = torch.where(numbers >= k, rest / rest[..., k : k + 1].sqrt(), 0.0)
        found = torch.where(numbers == k, column[..., None], found)
    return found.mT if upper else found


@_of_matrices(aten.cholesky.default)
def _cholesky_by_its_old_name(a: _Tensor, upper: bool = False) -> Any:
    return _cholesky(a, upper=upper)


@_of_matrices(aten.linalg_cholesky_ex.default)
def _cholesky_ex(a: _Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    return _cholesky(a, upper=upper), _no_errors(a)


def _no_errors(a: _Tensor) -> _Tensor:
    return torch.zeros(a.shape[:-2], dtype=torch.int32)


@_of_matrices(aten.linalg_solve_triangular.default)
def _triangular(a: _Tensor, b: _Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        return _triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    if unitriangular:
        size: Any = a.shape[-1]
        a = torch.where(torch.eye(size, dtype=torch.bool), 1.0, a)
    a, b = _in_batches(a, b)
    return routines.solve_upper(a, b) if upper else routines.solve_lower(a, b)


@_of_matrices(aten.triangular_solve.default)
def _triangular_by_its_old_name(
    b: _Tensor, a: _Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    factor = a.mT if transpose else a
    return _triangular(factor, b, upper=upper != transpose, unitriangular=unitriangular), a.clone()


@_of_matrices(aten.cholesky_solve.default)
def _cholesky_solve(b: _Tensor, factor: _Tensor, upper: bool = False) -> Any:
    factor = _adjoint(factor) if upper else factor
    return _triangular(_adjoint(factor), _triangular(factor, b, upper=False), upper=True)


@_of_matrices(aten.cholesky_inverse.default)
def _cholesky_inverse(factor: _Tensor, upper: bool = False) -> Any:
    unit = torch.eye(factor.shape[-1], dtype=factor.dtype).expand(factor.shape)
    return _cholesky_solve(unit, factor, upper)


# Factors.


@_of_matrices(aten._linalg_eigh.default)
def _eigh(a: _Tensor, uplo: str = "L", compute_v: bool = True) -> Any:
    vectors, values = routines.eigh(a if uplo.upper() == "L" else _adjoint(a))
    return values, vectors if compute_v else a.new_empty([0])


@_of_matrices(aten.linalg_eig.default)
def _eig(a: _Tensor) -> Any:
    return routines.eig(a)


@_of_matrices(aten.linalg_eigvals.default, aten._linalg_eigvals.default)
def _eigvals(a: _Tensor) -> Any:
    return routines.eig(a)[0]


@_of_matrices(aten._linalg_svd.default)
def _svd(a: _Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    left, values, right = (routines.full_svd if full_matrices and compute_uv else routines.svd)(a)
    return (left, values, right) if compute_uv else (a.new_empty([0]), values, a.new_empty([0]))


@_of_matrices(aten.linalg_qr.default)
def _qr(a: _Tensor, mode: str = "reduced") -> Any:
    rows, columns = a.shape[-2:]
    packed, taus = routines.qr(a)
    found = packed[..., : rows if mode == "complete" else min(rows, columns), :].triu()
    if mode == "r":
        return a.new_empty([0]), found
    count: Any = rows if mode == "complete" else min(rows, columns)
    if count > columns:
        packed = torch.nn.functional.pad(packed, (0, count - columns))
    return _householder_product(packed[..., :count], taus), found


@_of_matrices(aten.geqrf.default)
def _geqrf(a: _Tensor) -> Any:
    return routines.qr(a)


@_of_matrices(aten.linalg_householder_product.default)
def _householder_product(a: _Tensor, taus: _Tensor) -> Any:
    return routines.reflections(a, taus)


@_of_matrices(aten.linalg_lu_factor_ex.default)
def _lu_factor_ex(a: _Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    if not pivot:
        return NotImplemented
    packed, pivots, _ = routines.lu(a)
    return packed, pivots + 1, _no_errors(a)


@_of_matrices(aten.linalg_lu_factor.default)
def _lu_factor(a: _Tensor, *, pivot: bool = True) -> Any:
    found = _lu_factor_ex(a, pivot=pivot)
    return found if found is NotImplemented else found[:2]


@_of_matrices(aten.linalg_lu.default)
def _lu(a: _Tensor, *, pivot: bool = True) -> Any:
    if not pivot:
        return NotImplemented
    packed, _, order = routines.lu(a)
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    places = (torch.arange(rows)[:, None] == order[..., None, :]).to(a.dtype)
    return places, _unit(packed[..., :count]), packed[..., :count, :].triu()


def _parts_of_determinant(a: _Tensor) -> Any:
    """Both factors, where rows went, the diagonal, and the sign of the order of rows."""
    packed, pivots, _ = routines.lu(a)
    size: Any = a.shape[-1]
    swaps = (pivots != torch.arange(size, dtype=torch.int32)).sum(-1)
    return packed, pivots, packed.diagonal(dim1=-2, dim2=-1), (1 - 2 * (swaps % 2)).to(a.dtype)


@_of_matrices(aten._linalg_det.default)
def _determinant(a: _Tensor) -> Any:
    packed, pivots, diagonal, sign = _parts_of_determinant(a)
    return diagonal.prod(-1) * sign, packed, pivots + 1


@_of_matrices(aten._linalg_slogdet.default)
def _logarithm_of_determinant(a: _Tensor) -> Any:
    packed, pivots, diagonal, sign = _parts_of_determinant(a)
    return diagonal.sgn().prod(-1) * sign, diagonal.abs().log().sum(-1), packed, pivots + 1


def least_squares(a: _Tensor, b: _Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The shortest of all solutions, as LAPACK's ``gelsy`` and ``gelsd`` have it."""
    is_vector = b.dim() == a.dim() - 1
    b = b[..., None] if is_vector else b
    rows, columns = a.shape[-2:]
    left, values, right = routines.svd(a)
    least = torch.finfo(a.dtype).eps * max(rows, columns) if rcond is None else rcond
    counts = values > least * values[..., :1]
    inverse = torch.where(counts, 1 / torch.where(counts, values, 1.0), 0.0)
    found = _adjoint(right) @ (inverse[..., None] * (_adjoint(left) @ b))
    apart = (a @ found - b).abs()
    residuals = (apart * apart).sum(-2) if rows > columns else values.new_empty([0])
    spectrum = values if driver in ("gelsd", "gelss") else a.new_empty([0])
    return found[..., 0] if is_vector else found, residuals, counts.sum(-1), spectrum


@_of_matrices(aten.linalg_slogdet.default, aten.slogdet.default)
def _slogdet(a: _Tensor) -> Any:
    return _logarithm_of_determinant(a)[:2]


@_of_matrices(aten.linalg_pinv.atol_rtol_tensor)
def _pinv(a: _Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """PyTorch's, by singular values, also where the matrix is symmetric: then its lower half is."""
    if hermitian:
        a = a.tril() + _adjoint(a.tril(-1))
    left, values, right = routines.svd(a)
    eps = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    relative: Any = eps if rtol is None and atol is None else 0.0 if rtol is None else rtol
    if rtol is None and atol is not None:
        relative = torch.where(atol > 0, 0.0, eps)
    relative, absolute = (one[..., None] if isinstance(one, torch.Tensor) else one for one in (relative, atol))
    least = (relative * values[..., :1]).clamp(min=0.0 if absolute is None else absolute)
    counts = values > least
    inverse = torch.where(counts, 1 / torch.where(counts, values, 1.0), 0.0)
    return _adjoint(right) @ (inverse[..., None] * _adjoint(left))


_of_matrices(aten.linalg_matrix_exp.default, aten.matrix_exp.default)(routines.exponential)


@TABLE.of(aten.bilinear.default)
def _bilinear(x: _Tensor, y: _Tensor, weight: _Tensor, bias: _Tensor | None = None) -> Any:
    """torch-mlir's product of three tensors compares sizes that are one with those of batches, which may be 0."""
    outputs, width, others = weight.shape
    inner = x @ weight.permute(1, 0, 2).reshape(width, outputs * others)
    found = (inner.reshape([*x.shape[:-1], outputs, others]) @ y[..., None])[..., 0]
    return found if bias is None else found + bias
