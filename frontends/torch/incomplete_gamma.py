"""Decompositions of the incomplete gamma functions: sums over a dimension of terms or of places of quadrature.

What is below ``x`` is a series where ``x`` is at most ``a + 1``; what is above it else an integral, and of large
``a`` the smaller of both, of what is like a bell. Integrals are sums at places that double exponentials give.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from devscope.frontends.torch.own_decompositions import float_dtype
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
TABLE = Table()
_Tensor = torch.Tensor
_TERMS = 64
_LARGE = 20.0
_LARGE_BELOW = 60.0
"""Below the top of f64, whose bell ends at 0: it has the digits of f32 from 20 on, all of them from there."""


def _quadrature(dtype: torch.dtype) -> tuple[_Tensor, _Tensor]:
    """Places and weights to integrate from 0 what has an exponential's end (Takahasi and Mori)."""
    step = 7.6 / (_TERMS - 1)
    at = torch.arange(_TERMS, dtype=dtype) * step - 3.7
    places = torch.exp(at - torch.exp(-at))
    return places, step * (1 + torch.exp(-at)) * places


def _series(a: _Tensor, x: _Tensor) -> _Tensor:
    places = torch.arange(1, _TERMS + 1, dtype=x.dtype)
    return (1 + (x[..., None] / (a[..., None] + places)).cumprod(-1).sum(-1)) / a


def _rest(a: _Tensor, x: _Tensor) -> _Tensor:
    """The integral from ``x`` on, over what is in front of it: exp(-x) x**a."""
    places, weights = _quadrature(x.dtype)
    grown = torch.exp((a[..., None] - 1) * torch.log1p(places / x[..., None]) - places)
    return (weights * grown).sum(-1) / x


def _bell(a: _Tensor, x: _Tensor) -> _Tensor:
    """The integral from ``x`` away from the top, which is at ``a - 1``, scaled by Stirling's series for that."""
    places, weights = _quadrature(x.dtype)
    top = a - 1
    width = top.sqrt()
    away = torch.where(x > top, 1.0, -1.0)[..., None] * width[..., None] * places
    apart = ((x - top)[..., None] + away) / top[..., None]
    height = torch.exp(top[..., None] * (torch.log1p(apart.clamp(min=-1)) - apart))
    square = 1 / (top * top)
    scale = torch.exp((square * (1 / 360 - square * (1 / 1260 - square / 1680)) - 1 / 12) / top)
    return (weights * height).sum(-1) * scale / math.sqrt(2 * math.pi)


def _both(a: _Tensor, x: _Tensor) -> tuple[_Tensor, _Tensor]:
    """The parts of gamma's integral below ``x`` and above it, of 1."""
    to = float_dtype(torch.empty((), dtype=torch.promote_types(a.dtype, x.dtype)))
    dtype = torch.promote_types(to, torch.float32)
    a, x = torch.broadcast_tensors(a.to(dtype), x.to(dtype))
    is_large = a > (torch.where(x <= a - 1, _LARGE_BELOW, _LARGE) if dtype == torch.float64 else _LARGE)
    is_known = (a > 0) & (x > 0) & torch.isfinite(a) & torch.isfinite(x)
    one, other = torch.where(is_known, a, 1.0), torch.where(is_known, x, 1.0)
    small = torch.where(is_large, 1.0, one)
    front = torch.exp(small * torch.log(other) - other - torch.lgamma(small))
    is_below = torch.where(is_large, other <= one - 1, other <= small + 1)
    # Where it is not looked at, it is of something that nothing overflows of.
    series = front * _series(small, torch.where(is_below, other, 1.0))
    rest = front * _rest(small, torch.where(is_below, 1.0, other))
    large = torch.where(is_large, one, _LARGE)
    part = torch.where(is_large, _bell(large, other), torch.where(is_below, series, rest)).clamp(0, 1)
    below, above = torch.where(is_below, part, 1 - part), torch.where(is_below, 1 - part, part)
    is_nothing = (x == 0) | torch.isinf(a)
    is_wrong = (a < 0) | (x < 0) | (a == 0) & (x == 0) | torch.isinf(a) & torch.isinf(x) | torch.isnan(a + x)

    def ends(found: _Tensor, nothing: float) -> _Tensor:
        found = torch.where(is_known, found, torch.where(is_nothing, nothing, 1 - nothing))
        return torch.where(is_wrong, torch.nan, found).to(to)

    return ends(below, 0.0), ends(above, 1.0)


@TABLE.of(aten.igamma.default, aten.special_gammainc.default, prims.igamma.default)
def _below(a: _Tensor, x: _Tensor) -> Any:
    return _both(a, x)[0]


@TABLE.of(aten.igammac.default, aten.special_gammaincc.default, prims.igammac.default)
def _above(a: _Tensor, x: _Tensor) -> Any:
    return _both(a, x)[1]
