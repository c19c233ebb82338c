"""Decompositions of what is solved with matrices, and of their factors.

With few columns, their number known, a step for each of them; else by routines (`matrix_operations`).
Where PyTorch raises an error, since a matrix is singular or not positive definite, results are infinities or NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from devscope.frontends.torch import matrix_operations as routines
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
    if not _is_real(a):
        return NotImplemented
    solved = _solved if _is_small(a) else _solved_by_routines
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    if is_vector:
        return solved(a, b[..., None])[..., 0]
    return solved(a, b) if left else solved(a.mT, b.mT).mT


def _is_real(a: _Tensor) -> bool:
    return a.dtype in (torch.float32, torch.float64)


def _in_batches(a: _Tensor, b: _Tensor) -> tuple[_Tensor, _Tensor]:
    outer = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*outer, *a.shape[-2:]), b.expand(*outer, *b.shape[-2:])


def _solved_by_routines(a: _Tensor, b: _Tensor) -> _Tensor:
    a, b = _in_batches(a, b)
    packed, _, order = routines.lu(a)
    b = b.gather(-2, order.to(torch.int64)[..., None].expand(b.shape))
    return routines.solve_upper(packed.triu(), routines.solve_lower(_unit(packed), b))


def _unit(packed: _Tensor) -> _Tensor:
    """The lower factor, of ones on the diagonal."""
    rows, columns = packed.shape[-2:]
    return packed.tril(-1) + torch.eye(rows, columns, dtype=packed.dtype)


def _solve_ex(a: _Tensor, b: _Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    found = _solve(a, b, left=left)
    return found if found is NotImplemented else (found, _no_errors(a))


def _inverse(a: _Tensor) -> Any:
    if not _is_real(a):
        return NotImplemented
    solved = _solved if _is_small(a) else _solved_by_routines
    return solved(a, torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape))


def _inverse_ex(a: _Tensor, *, check_errors: bool = False) -> Any:
    found = _inverse(a)
    return found if found is NotImplemented else (found, _no_errors(a))


def _cholesky(a: _Tensor, *, upper: bool = False) -> Any:
    if not _is_real(a):
        return NotImplemented
    a = a.mT if upper else a  # only that half is looked at
    if not _is_small(a):
        found = routines.cholesky(a)
        return found.mT if upper else found
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


def _triangular(a: _Tensor, b: _Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not _is_real(a):
        return NotImplemented
    if not left:
        return _triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    if unitriangular:
        size: Any = a.shape[-1]
        a = torch.where(torch.eye(size, dtype=torch.bool), 1.0, a)
    a, b = _in_batches(a, b)
    return routines.solve_upper(a, b) if upper else routines.solve_lower(a, b)


def _cholesky_solve(b: _Tensor, factor: _Tensor, upper: bool = False) -> Any:
    if not _is_real(factor):
        return NotImplemented
    factor = factor.mT if upper else factor
    return _triangular(factor.mT, _triangular(factor, b, upper=False), upper=True)


# Factors.


def _eigh(a: _Tensor, uplo: str = "L", compute_v: bool = True) -> Any:
    if not _is_real(a):
        return NotImplemented
    vectors, values = routines.eigh(a if uplo.upper() == "L" else a.mT)
    return values, vectors if compute_v else a.new_empty([0])


def _svd(a: _Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> Any:
    if not _is_real(a):
        return NotImplemented
    left, values, right = (routines.full_svd if full_matrices and compute_uv else routines.svd)(a)
    return (left, values, right) if compute_uv else (a.new_empty([0]), values, a.new_empty([0]))


def _qr(a: _Tensor, mode: str = "reduced") -> Any:
    if not _is_real(a):
        return NotImplemented
    rows, columns = a.shape[-2:]
    packed, taus = routines.qr(a)
    found = packed[..., : rows if mode == "complete" else min(rows, columns), :].triu()
    if mode == "r":
        return a.new_empty([0]), found
    count: Any = rows if mode == "complete" else min(rows, columns)
    if count > columns:
        packed = torch.nn.functional.pad(packed, (0, count - columns))
    return _householder_product(packed[..., :count], taus), found


def _geqrf(a: _Tensor) -> Any:
    return routines.qr(a) if _is_real(a) else NotImplemented


def _householder_product(a: _Tensor, taus: _Tensor) -> Any:
    return routines.reflections(a, taus) if _is_real(a) else NotImplemented


def _lu_factor_ex(a: _Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    if not _is_real(a) or not pivot:
        return NotImplemented
    packed, pivots, _ = routines.lu(a)
    return packed, pivots + 1, _no_errors(a)


def _lu_factor(a: _Tensor, *, pivot: bool = True) -> Any:
    found = _lu_factor_ex(a, pivot=pivot)
    return found if found is NotImplemented else found[:2]


def _lu(a: _Tensor, *, pivot: bool = True) -> Any:
    if not _is_real(a) or not pivot:
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


def _determinant(a: _Tensor) -> Any:
    if not _is_real(a):
        return NotImplemented
    packed, pivots, diagonal, sign = _parts_of_determinant(a)
    return diagonal.prod(-1) * sign, packed, pivots + 1


def _logarithm_of_determinant(a: _Tensor) -> Any:
    if not _is_real(a):
        return NotImplemented
    packed, pivots, diagonal, sign = _parts_of_determinant(a)
    return diagonal.sign().prod(-1) * sign, diagonal.abs().log().sum(-1), packed, pivots + 1


def least_squares(a: _Tensor, b: _Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The shortest of all solutions, as LAPACK's ``gelsy`` and ``gelsd`` have it."""
    if not _is_real(a):
        return NotImplemented
    is_vector = b.dim() == a.dim() - 1
    b = b[..., None] if is_vector else b
    rows, columns = a.shape[-2:]
    left, values, right = routines.svd(a)
    least = torch.finfo(a.dtype).eps * max(rows, columns) if rcond is None else rcond
    counts = values > least * values[..., :1]
    inverse = torch.where(counts, 1 / torch.where(counts, values, 1.0), 0.0)
    found = right.mT @ (inverse[..., None] * (left.mT @ b))
    apart = a @ found - b
    residuals = (apart * apart).sum(-2) if rows > columns else a.new_empty([0])
    spectrum = values if driver in ("gelsd", "gelss") else a.new_empty([0])
    return found[..., 0] if is_vector else found, residuals, counts.sum(-1), spectrum


def _matrix_exp(a: _Tensor) -> Any:
    """A Taylor series of the matrix, halved as often as its norm wants it, squared as often."""
    if not _is_real(a):
        return NotImplemented
    size: Any = a.shape[-1]
    most, terms = (16, 10) if a.dtype == torch.float32 else (20, 14)
    norm = a.abs().sum(-2).amax(-1)
    times = torch.ceil(torch.log2(norm.clamp(min=2.0**-8))).add(2).clamp(0, most)
    small = a * torch.exp2(-times)[..., None, None]
    one = torch.eye(size, dtype=a.dtype)
    found = one + small / terms
    for term in range(terms - 1, 0, -1):
        found = one + small @ found / term
    for step in range(most):
        found = torch.where((times > step)[..., None, None], found @ found, found)
    return found


def _slogdet(a: _Tensor) -> Any:
    found = _logarithm_of_determinant(a)
    return found if found is NotImplemented else found[:2]


def _pinv(a: _Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """PyTorch's, by singular values, also where the matrix is symmetric."""
    if not _is_real(a):
        return NotImplemented
    left, values, right = routines.svd(a)
    eps = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    relative: Any = eps if rtol is None and atol is None else 0.0 if rtol is None else rtol
    if rtol is None and atol is not None:
        relative = torch.where(atol > 0, 0.0, eps)
    relative, absolute = (one[..., None] if isinstance(one, torch.Tensor) else one for one in (relative, atol))
    least = (relative * values[..., :1]).clamp(min=0.0 if absolute is None else absolute)
    counts = values > least
    inverse = torch.where(counts, 1 / torch.where(counts, values, 1.0), 0.0)
    return right.mT @ (inverse[..., None] * left.mT)


TABLE[aten.linalg_pinv.atol_rtol_tensor] = _pinv
TABLE[aten.linalg_slogdet.default] = TABLE[aten.slogdet.default] = _slogdet
TABLE[aten._linalg_eigh.default] = _eigh
TABLE[aten._linalg_svd.default] = _svd
TABLE[aten.linalg_qr.default] = _qr
TABLE[aten.geqrf.default] = _geqrf
TABLE[aten.linalg_householder_product.default] = _householder_product
TABLE[aten.linalg_lu.default] = _lu
TABLE[aten.linalg_lu_factor.default] = _lu_factor
TABLE[aten.linalg_lu_factor_ex.default] = _lu_factor_ex
TABLE[aten._linalg_det.default] = _determinant
TABLE[aten._linalg_slogdet.default] = _logarithm_of_determinant
TABLE[aten.linalg_matrix_exp.default] = TABLE[aten.matrix_exp.default] = _matrix_exp
TABLE[aten.linalg_solve_triangular.default] = _triangular
TABLE[aten.cholesky_solve.default] = _cholesky_solve
TABLE[aten.linalg_solve.default] = _solve
TABLE[aten.linalg_solve_ex.default] = _solve_ex
TABLE[aten.linalg_inv.default] = TABLE[aten.inverse.default] = _inverse
TABLE[aten.linalg_inv_ex.default] = _inverse_ex
TABLE[aten.linalg_cholesky.default] = _cholesky
TABLE[aten.linalg_cholesky_ex.default] = _cholesky_ex
