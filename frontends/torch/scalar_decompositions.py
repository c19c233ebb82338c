"""Tensors without dimensions, as ones of one element; variances of too few elements; operands of other shapes.

All of it in front of what is decomposed, or lowered by torch-mlir, in the same way for other shapes.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor


def _as_one(overload: Any, x: _Tensor, *others: Any, **options: Any) -> Any:
    found = overload(x.reshape(1), *others, **options)
    return found.reshape([]) if isinstance(found, _Tensor) else tuple(part.reshape([]) for part in found)


def _of_one(overload: Any) -> None:
    def decompose(x: _Tensor, *others: Any, **options: Any) -> Any:
        return NotImplemented if x.dim() else _as_one(overload, x, *others, **options)

    TABLE[overload] = decompose


for _overload in (
    *(aten.cumsum.default, aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim),
    *(aten.kthvalue.default, aten.median.dim, aten.nanmedian.dim, aten.mode.default),
    *(aten._softmax.default, aten._log_softmax.default, aten.cumprod.default, aten.prod.dim_int),
    *(aten.amax.default, aten.amin.default, aten.any.dim, aten.any.dims, aten.all.dim, aten.all.dims),
):
    _of_one(_overload)


@TABLE.of(aten.index_reduce.default)
def _index_reduce(x: _Tensor, dim: int, index: _Tensor, source: _Tensor, reduce: str, **options: Any) -> Any:
    if x.dim():
        return NotImplemented
    return aten.index_reduce.default(x.reshape(1), 0, index, source.reshape(1), reduce, **options).reshape([])


@TABLE.of(aten.multilabel_margin_loss_forward.default)
def _multilabel_margin_loss(x: _Tensor, target: _Tensor, reduction: int) -> Any:
    if x.dim():
        return NotImplemented
    loss, is_target = aten.multilabel_margin_loss_forward.default(x.reshape(1), target.reshape(1), reduction)
    return loss, is_target.reshape([])


@TABLE.of(aten.aminmax.default)
def _aminmax(x: _Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    if x.dim() == 0:
        return x.clone(), x.clone()
    dims = [] if dim is None else [dim]
    return x.amin(dims, keepdim), x.amax(dims, keepdim)


def _variance_of_few(overload: Any) -> None:
    """Of fewer elements than ``correction``, torch-mlir divides by less than nothing, PyTorch by 0."""

    def decompose(
        x: _Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
    ) -> Any:
        if x.dim() == 0:
            return _as_one(overload, x, dim, correction=correction, keepdim=keepdim)
        sizes: list[Any] = [x.shape[one] for one in dim or range(x.dim())]
        count, taken = math.prod(sizes), 1 if correction is None else correction
        if all(isinstance(size, int) for size in sizes):
            return NotImplemented if count >= taken else overload(x, dim, correction=count, keepdim=keepdim)
        if taken == 0:
            return NotImplemented
        found, total = overload(x, dim, correction=0, keepdim=keepdim), torch.scalar_tensor(count, dtype=x.dtype)
        ratio = total / (total - taken).clamp(min=0)
        return (found[0] * ratio, found[1]) if isinstance(found, tuple) else found * ratio

    TABLE[overload] = decompose


for _overload in (aten.var.correction, aten.var_mean.correction):
    _variance_of_few(_overload)


# torch-mlir and PyTorch's prims want operands of one shape.


@TABLE.of(aten.fmax.default)
def _fmax(x: _Tensor, y: _Tensor) -> Any:
    if not x.dtype.is_floating_point:
        return aten.maximum.default(x, y)
    return torch.where((x >= y) | torch.isnan(y), x, y)


@TABLE.of(aten.fmin.default)
def _fmin(x: _Tensor, y: _Tensor) -> Any:
    if not x.dtype.is_floating_point:
        return aten.minimum.default(x, y)
    return torch.where((x <= y) | torch.isnan(y), x, y)


# torch-mlir takes what is compared with itself for equal: NaN, too.


@TABLE.of(aten.eq.Tensor)
def _equal(x: _Tensor, y: _Tensor) -> Any:
    if not (x.dtype.is_floating_point and y.dtype.is_floating_point):
        return NotImplemented
    return torch.logical_not(aten.ne.Tensor(x, y))


@TABLE.of(aten.isclose.default)
def _is_close(x: _Tensor, y: _Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    is_same = x == y
    if not y.dtype.is_floating_point:
        y = y.to(torch.get_default_dtype())
    distance = (x - y).abs()
    is_close = is_same | (torch.isfinite(distance) & (distance <= atol + (rtol * y).abs()))
    return is_close | (torch.isnan(x) & torch.isnan(y)) if equal_nan and x.dtype.is_floating_point else is_close


@TABLE.of(aten.isfinite.default)
def _is_finite(x: _Tensor) -> Any:
    if x.dtype.is_complex:
        return torch.isfinite(x.real) & torch.isfinite(x.imag)
    return x.abs() < math.inf if x.dtype.is_floating_point else torch.ones_like(x, dtype=torch.bool)


@TABLE.of(aten.polar.default)
def _polar(size: _Tensor, angle: _Tensor) -> Any:
    return torch.complex(size * torch.cos(angle), size * torch.sin(angle))


@TABLE.of(aten.masked_scatter.default)
def _masked_scatter(x: _Tensor, mask: _Tensor, source: _Tensor) -> Any:
    """The elements of ``source`` in order, as many as there are true ones before."""
    x, mask = torch.broadcast_tensors(x, mask)
    if source.numel() == 0:
        return x.clone()
    place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(0, source.numel() - 1)
    return torch.where(mask, source.reshape(-1).index_select(0, place).reshape(x.shape), x)
