"""Decompositions of special functions: of the gamma function and its kin, quantiles of errors; and of bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from devscope.frontends.torch.matrix_operations import WORDS, bits_as
from devscope.frontends.torch.own_decompositions import float_dtype
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
TABLE = Table()
_Tensor = torch.Tensor
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = 0.5772156649015329
_QUANTILES: tuple[tuple[Sequence[float], Sequence[float]], ...] = (
    (
        (
            *(3.3871328727963666, 133.14166789178438, 1971.5909503065514, 13731.693765509461),
            *(45921.953931549871, 67265.770927008700, 33430.575583588128, 2509.0809287301227),
        ),
        (
            *(1.0, 42.313330701600911, 687.18700749205791, 5394.1960214247511),
            *(21213.794301586596, 39307.895800092711, 28729.085735721943, 5226.4952788528546),
        ),
    ),
    (
        (
            *(1.4234371107496836, 4.6303378461565453, 5.7694972214606914, 3.6478483247632046),
            *(1.2704582524523684, 0.24178072517745061, 0.022723844989269185, 7.7454501427834141e-4),
        ),
        (
            *(1.0, 2.0531916266377588, 1.6763848301838038, 0.68976733498510000),
            *(0.14810397642748007, 0.015198666563616457, 5.4759380849953450e-4, 1.0507500716444168e-9),
        ),
    ),
    (
        (
            *(6.6579046435011038, 5.4637849111641144, 1.7848265399172913, 0.29656057182850489),
            *(0.026532189526576123, 1.2426609473880784e-3, 2.7115555687434876e-5, 2.0103343992922881e-7),
        ),
        (
            *(1.0, 0.59983220655588794, 0.13692988092273581, 0.014875361290850615),
            *(7.8686913114561326e-4, 1.8463183175100547e-5, 1.4215117583164459e-7, 2.0442631033899398e-15),
        ),
    ),
)
"""Wichura's rational functions (AS 241): of the middle, of the tails, and of what is far out."""


def _ratio(r: _Tensor, polynomials: tuple[Sequence[float], Sequence[float]]) -> _Tensor:
    above, below = (_horner(r, numbers) for numbers in polynomials)
    return above / below


def _horner(x: _Tensor, numbers: Sequence[float]) -> _Tensor:
    found = torch.full_like(x, numbers[-1])
    for number in numbers[-2::-1]:
        found = found * x + number
    return found


def _normal_quantile(q: _Tensor, beyond: _Tensor) -> _Tensor:
    """Of 1/2 + q; ``beyond``: how far that is from the nearer one of 0 and 1."""
    middle = q * _ratio(0.180625 - q * q, _QUANTILES[0])
    r = torch.sqrt(-torch.log(beyond))
    tail = torch.where(r <= 5, _ratio(r - 1.6, _QUANTILES[1]), _ratio(r - 5, _QUANTILES[2]))
    tail = torch.where(torch.isinf(r), math.inf, tail)
    return torch.where(q.abs() <= 0.425, middle, torch.where(q < 0, -tail, tail))


@TABLE.of(prims.ndtri.default)
def _ndtri(p: _Tensor) -> _Tensor:
    return _normal_quantile(p - 0.5, torch.minimum(p, 1 - p))


_INVERSE_ERF = (
    (
        *(0.88622689, 0.23201382, 0.011548654, -2.3342965e-3, -1.2748140e-4, 4.4565077e-5),
        *(3.9832830e-6, -1.9764700e-6, 2.2103141e-7, -8.7910568e-9),
    ),
    (
        *(2.8329768, 1.0016750, 9.4452864e-3, -7.6372889e-3, 5.6869732e-3, -3.5974053e-3),
        *(1.4850927e-3, -5.6776953e-5, -3.0957317e-4, 1.1570422e-4),
    ),
)
"""Of x, divided by x: polynomials in w = -log(1 - x x) up to 5, and in sqrt(w) - 3 beyond, as far as f32 go."""


@TABLE.of(aten.erfinv.default, aten.special_erfinv.default, prims.erf_inv.default)
def _erfinv(x: _Tensor) -> Any:
    if float_dtype(x) != torch.float64:
        single = x.float()
        w = -torch.log((1 - single) * (1 + single))
        tail = _horner(torch.sqrt(w) - 3, _INVERSE_ERF[1])
        return (single * torch.where(w < 5, _horner(w, _INVERSE_ERF[0]), tail)).to(float_dtype(x))
    wide = x.double()
    return (_normal_quantile(wide / 2, (1 - wide.abs()) / 2) * math.sqrt(0.5)).to(float_dtype(x))


@cache
def _around_two() -> list[float]:
    """Of lgamma(2 + z) / z: as sizes of terms are those of (z / 2)**k, a half of z needs 24."""
    orders = [float(k) for k in range(2, 26)]
    with _disable_current_modes():  # those that trace the program
        zeta = torch.special.zeta(torch.tensor(orders, dtype=torch.float64), torch.tensor(2.0)).tolist()
    return [1 - _EULER, *((-1) ** k * number / k for k, number in enumerate(zeta, 2))]


@TABLE.of(aten.lgamma.default)
def _lgamma(x: _Tensor) -> Any:
    """Stirling's series, from 8 on; below by the recurrence from around 2; by the reflection for what is negative.

    So nothing is lost near 1 and 2, where it is 0.
    """
    wide = x.double()
    y = torch.where(wide < 0.5, 1 - wide, wide)
    is_low, is_large = y < 1.5, y >= 8
    near, product = torch.where(is_low, y + 1, y), torch.where(is_low, y, 1.0)
    for _ in range(6):
        is_far = near > 2.5
        near = torch.where(is_far, near - 1, near)
        product = torch.where(is_far, product * near, product)
    z = torch.where(is_low, y - 1, near - 2)
    logarithm = torch.log(torch.where(is_large, y, product))
    low = torch.where(is_low, -logarithm, logarithm) + z * _horner(z, _around_two())
    series = _horner(1 / (y * y), [number / (2 * k * (2 * k - 1)) for k, number in enumerate(_BERNOULLI, 1)])
    high = (y - 0.5) * (logarithm - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series / y
    found = torch.where(is_large, torch.where(torch.isinf(y), math.inf, high), low)
    sine = torch.sin(math.pi * (wide - torch.round(wide))).abs()
    found = torch.where(wide < 0.5, math.log(math.pi) - torch.log(sine) - found, found)
    return torch.where(torch.isinf(wide), math.inf, found).to(float_dtype(x))


@TABLE.of(aten.digamma.default)
def _digamma(x: _Tensor) -> Any:
    wide = x.double()
    y = torch.where(wide < 0.5, 1 - wide, wide)
    found = torch.zeros_like(y)
    for step in range(8):
        found = found - 1 / (y + step)
    z = y + 8
    inverse = 1 / (z * z)
    series = inverse * _horner(inverse, [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)])
    found = found + torch.log(z) - 0.5 / z - series
    reflected = found - math.pi / torch.tan(math.pi * (wide - torch.round(wide)))
    found = torch.where(wide < 0.5, reflected, found)
    found = torch.where((wide < 0) & (wide == torch.floor(wide)), math.nan, found)
    return torch.where(wide == 0, -1 / wide, found).to(float_dtype(x))


@TABLE.of(prims.zeta.default)
def _zeta(s: Any, q: Any) -> _Tensor:
    """Hurwitz': nine terms, and the rest by Euler and Maclaurin; not of negative q, for which there are more."""
    like = q if isinstance(q, torch.Tensor) else s
    s, q = (x if isinstance(x, torch.Tensor) else torch.full_like(like, x) for x in (s, q))
    dtype = torch.promote_types(s.dtype, q.dtype)
    s, q = (x.to(dtype) for x in torch.broadcast_tensors(s, q))
    found = torch.zeros_like(q)
    for k in range(9):
        found = found + torch.pow(q + k, -s)
    a = q + 9
    power = torch.pow(a, -s)
    found = found + power * a / (s - 1) + power / 2
    term = s * (power / a)
    for k, number in enumerate(_BERNOULLI, 1):
        found = found + number / math.factorial(2 * k) * term
        term = term * ((s + 2 * k - 1) / a) * ((s + 2 * k) / a)
    found = torch.where((q <= 0) & (q == torch.floor(q)), math.inf, found)
    found = torch.where((q <= 0) & (q != torch.floor(q)), math.nan, found)
    return torch.where(s == 1, math.inf, torch.where(s < 1, math.nan, found))


@TABLE.of(aten.polygamma.default)
def _polygamma(order: int, x: _Tensor) -> Any:
    x = x.to(float_dtype(x))
    if order == 0:
        return torch.digamma(x)
    if order == 1:
        return _trigamma(x)
    sign = 1 if order % 2 else -1
    return sign * math.factorial(order) * torch.special.zeta(torch.full_like(x, order + 1.0), x)


def _trigamma(x: _Tensor) -> _Tensor:
    """Of small numbers by those on the other side of 1/2."""
    is_small = x < 0.5
    y, found = torch.where(is_small, 1 - x, x), torch.zeros_like(x)
    for _ in range(6):
        found, y = found + 1 / (y * y), y + 1
    r = 1 / (y * y)
    found = found + (1 + 1 / (2 * y) + r * (1 / 6 - r * (1 / 30 - r * (1 / 42)))) / y
    root = math.pi / torch.sin(math.pi * x)
    return torch.where(is_small, root * root - found, found)


@TABLE.of(aten.view.dtype)
def _view(x: _Tensor, dtype: torch.dtype) -> Any:
    """Elements of another width are parts of those along the last dimension, the lowest first, or made of them."""
    if x.dtype == dtype:
        return x.clone()
    if x.dtype.is_complex:
        return aten.view.dtype(torch.view_as_real(x).flatten(-2), dtype)
    if dtype.is_complex:
        parts = aten.view.dtype(x, torch.float32 if dtype == torch.complex64 else torch.float64)
        return torch.view_as_complex(parts.unflatten(-1, (-1, 2)))
    if x.dtype == torch.bool:
        return aten.view.dtype(x.to(torch.int8), dtype)
    if dtype == torch.bool:
        return aten.view.dtype(x, torch.int8) != 0
    old, new = x.dtype.itemsize, dtype.itemsize
    bits, of = bits_as(x, WORDS[old]), WORDS[new]
    if old > new:
        places = torch.arange(0, 8 * old, 8 * new, dtype=bits.dtype)
        bits = (bits[..., None] >> places).to(of).flatten(-2)
    if old < new:
        parts = bits.reshape([*x.shape[:-1], -1, new // old]).to(of) & ((1 << 8 * old) - 1)
        bits = torch.bitwise_left_shift(parts, torch.arange(0, 8 * new, 8 * old, dtype=of)).sum(-1, dtype=of)
    return bits_as(bits, dtype)


@TABLE.of(aten.__lshift__.Tensor)
def _shift(x: _Tensor, by: _Tensor) -> Any:
    return torch.bitwise_left_shift(x, by)


@TABLE.of(prims.nextafter.default)
def _next_after(x: _Tensor, y: _Tensor) -> _Tensor:
    """One more or less, of the bits: sizes of floats are in the order of these."""
    x, y = torch.broadcast_tensors(x, y)
    of = WORDS[x.dtype.itemsize]
    bits, least = bits_as(x, of), bits_as(torch.ones(1, dtype=of), x.dtype)
    found = bits_as(bits + torch.where((y > x) == (x > 0), 1, -1).to(of), x.dtype)
    found = torch.where(x == 0, torch.where(y > 0, least, -least), found)
    return torch.where((x == y) | torch.isnan(y), y, torch.where(torch.isnan(x), x, found))
