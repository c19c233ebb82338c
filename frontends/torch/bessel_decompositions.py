"""Decompositions of Bessel functions, as sums of Chebyshev polynomials: of the square of small arguments, and of
what is 0 where arguments are infinite, as in Cephes.

PyTorch's own results in double precision, or means over a circle, give the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from devscope.frontends.torch.own_decompositions import float_dtype
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
TABLE = Table()
_Tensor = torch.Tensor
_special: Any = torch.special


@cache
def _coefficients(order: int, is_large: bool) -> list[float]:
    """Of exp(-x) I(x) / x**order up to 8, along x; from there on of exp(-x) I(x), along 1/x, times the root of x.

    I(x) / x**order is the mean of exp(x cos) sin**(2 order) over a circle.
    """
    angles = (np.arange(4096) + 0.5) * np.pi / 4096

    def smooth(t: Any) -> Any:
        x = 16 / (t + 1) if is_large else 4 * (t + 1)
        mean = (np.exp(-2 * x[:, None] * np.sin(angles / 2) ** 2) * np.sin(angles) ** (2 * order)).mean(1)
        return mean * x ** (order + 0.5) if is_large else mean

    return _interpolated(smooth)


def _interpolated(smooth: Callable[[Any], Any]) -> list[float]:
    """By cosines at 64 places: numpy's recurrence for the polynomials loses two digits."""
    cosines = np.cos(np.arange(256) * np.pi / 128)
    places = 2 * np.arange(64) + 1
    found = cosines[np.outer(np.arange(31), places) % 256] @ smooth(cosines[places]) / 32
    return [found[0] / 2, *found[1:].tolist()]


def _chebyshev(t: _Tensor, coefficients: list[float]) -> _Tensor:
    least = 1e-17 if t.dtype == torch.float64 else 1e-9
    while abs(coefficients[-1]) < least:
        coefficients = coefficients[:-1]
    last = before = torch.zeros_like(t)
    for number in coefficients[:0:-1]:
        last, before = number + 2 * t * last - before, last
    return coefficients[0] + t * last - before


def _bessel(overload: Any, order: int, is_scaled: bool) -> None:
    @TABLE.of(overload)
    def compute(x: _Tensor) -> _Tensor:
        to = float_dtype(x)
        x = x.to(torch.promote_types(to, torch.float32))
        size = x.abs()
        small, large = size.clamp(max=8), size.clamp(min=8)
        low, high = (
            _chebyshev(t, _coefficients(order, is_large))
            for is_large, t in ((False, small / 4 - 1), (True, 16 / large - 1))
        )
        low = low * small if order else low
        if not is_scaled:
            low, high = low * torch.exp(small), high * torch.exp(large)
        found = torch.where(size <= 8, low, high / torch.sqrt(large))
        return (torch.where(x < 0, -found, found) if order else found).to(to)


for _order, _name in enumerate(("bessel_i0", "bessel_i1")):
    _bessel(getattr(prims, _name).default, _order, False)
    _bessel(getattr(aten, f"special_modified_{_name}").default, _order, False)
    _bessel(getattr(prims, f"{_name}e").default, _order, True)


def _at_waves(x: _Tensor, order: int) -> tuple[_Tensor, _Tensor]:
    """Cosine and sine of ``x - pi / 4 - order pi / 2``."""
    cosine, sine = torch.cos(x), torch.sin(x)
    one, other = (cosine + sine) * math.sqrt(0.5), (sine - cosine) * math.sqrt(0.5)
    return (other, -one) if order else (one, other)


def _amplitudes(x: _Tensor, order: int) -> tuple[_Tensor, _Tensor]:
    """What J and Y are times cosine and sine, times the root of ``pi x / 2``; the second times ``x``, too."""
    j, y = (getattr(_special, f"bessel_{kind}{order}")(x) for kind in "jy")
    (cosine, sine), root = _at_waves(x, order), torch.sqrt(math.pi / 2 * x)
    return root * (j * cosine + y * sine), root * x * (y * cosine - j * sine)


def _by_circle(n: int, x: Any) -> Any:
    """J of order ``n``, of small arguments, more exact than PyTorch's."""
    angles = (np.arange(256) + 0.5) * np.pi / 128
    return np.cos(n * angles - np.sin(angles) * x[:, None]).mean(1)


def _beside_logarithm(order: int, x: Any) -> Any:
    """Y less what it has of a logarithm and of 1 / x, by Neumann's series."""
    found = (np.euler_gamma - math.log(2) - order) * _by_circle(order, x)
    for k in range(1, 24):
        factor = (2 * k + 1) / (k * k + k) if order else 2 / k
        found = found - (-1) ** k * factor * _by_circle(2 * k + order, x)
    found = found + (1 - _by_circle(0, x)) / x if order else found
    return 2 / math.pi * found


_SMOOTH: dict[str, Callable[[_Tensor], _Tensor]] = {
    "k0": lambda x: _special.modified_bessel_k0(x) + torch.log(x / 2) * _special.i0(x),
    "k1": lambda x: (_special.modified_bessel_k1(x) - torch.log(x / 2) * _special.i1(x) - 1 / x) / x,
    "p0": lambda x: _amplitudes(x, 0)[0],
    "q0": lambda x: _amplitudes(x, 0)[1],
    "p1": lambda x: _amplitudes(x, 1)[0],
    "q1": lambda x: _amplitudes(x, 1)[1],
    "large k0": lambda x: _special.scaled_modified_bessel_k0(x) * torch.sqrt(x),
    "large k1": lambda x: _special.scaled_modified_bessel_k1(x) * torch.sqrt(x),
}


@cache
def _fitted(name: str) -> list[float]:
    """Of J and Y on both sides of 8, of K on both sides of 2."""

    def smooth(t: Any) -> Any:
        if name[0] in "jy":
            x, order = np.sqrt(32 * (t + 1)), int(name[1])
            return (_by_circle if name[0] == "j" else _beside_logarithm)(order, x) / x**order
        if name in ("k0", "k1"):
            x = np.sqrt(2 * (t + 1))
        elif name.startswith("large"):
            x = 4 / (t + 1)
        else:
            x = 8 * np.sqrt(2 / (t + 1))
        return _SMOOTH[name](torch.from_numpy(x)).numpy()

    with _disable_current_modes():  # those that trace the program
        return _interpolated(smooth)


def _of_waves(kind: str, order: int) -> None:
    @TABLE.of(getattr(aten, f"special_bessel_{kind}{order}").default)
    def compute(x: _Tensor) -> _Tensor:
        x = x.to(float_dtype(x))
        size = x.abs()
        small, large = size.clamp(max=8), size.clamp(min=8)
        t = small * small / 32 - 1
        power = small if order else 1
        j = _chebyshev(t, _fitted(f"j{order}")) * power
        p, q = (_chebyshev(2 * (8 / large) ** 2 - 1, _fitted(f"{name}{order}")) for name in "pq")
        cosine, sine = _at_waves(large, order)
        root = torch.sqrt(2 / math.pi / large)
        if kind == "j":
            found = torch.where(size <= 8, j, root * (p * cosine - q / large * sine))
            return torch.where(x < 0, -found, found) if order else found
        low = _chebyshev(t, _fitted(f"y{order}")) * power + 2 / math.pi * torch.log(small) * j
        low = low - 2 / math.pi / small if order else low
        found = torch.where(size <= 8, low, root * (p * sine + q / large * cosine))
        return torch.where(x == 0, -math.inf, torch.where(x < 0, math.nan, found))


def _decaying(order: int, is_scaled: bool) -> None:
    name = f"special_{'scaled_' if is_scaled else ''}modified_bessel_k{order}"

    @TABLE.of(getattr(aten, name).default)
    def compute(x: _Tensor) -> _Tensor:
        x = x.to(float_dtype(x))
        small, large = x.clamp(max=2), x.clamp(min=2)
        low = _chebyshev(small * small / 2 - 1, _fitted(f"k{order}"))
        if order:
            low = low * small + torch.log(small / 2) * torch.special.i1(small) + 1 / small
        else:
            low = low - torch.log(small / 2) * torch.special.i0(small)
        high = _chebyshev(4 / large - 1, _fitted(f"large k{order}")) / torch.sqrt(large)
        low, high = (low * torch.exp(small), high) if is_scaled else (low, high * torch.exp(-large))
        return torch.where(x == 0, math.inf, torch.where(x < 0, math.nan, torch.where(x <= 2, low, high)))


for _order in range(2):
    for _kind in "jy":
        _of_waves(_kind, _order)
    for _is_scaled in (False, True):
        _decaying(_order, _is_scaled)


@TABLE.of(aten.special_spherical_bessel_j0.default)
def _spherical(x: _Tensor) -> _Tensor:
    x = x.to(float_dtype(x))
    return torch.where(x.isinf(), 0.0, torch.where(x == 0, 1.0, torch.sin(x) / x))
