"""Decompositions of orthogonal polynomials of a degree that is a number: their recurrences, written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devscope.frontends.torch.own_decompositions import float_dtype
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_Step = Callable[[_Tensor, _Tensor, _Tensor, int], _Tensor]
_MOST = 200
"""Steps that are written out."""


def _chebyshev(x: _Tensor, p: _Tensor, q: _Tensor, _: int) -> _Tensor:
    return 2 * x * q - p


_RECURRENCES: dict[str, tuple[Callable[[_Tensor], _Tensor], _Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, p, q, k: 2 * x * q - 2 * k * p),
    "hermite_polynomial_he": (lambda x: x, lambda x, p, q, k: x * q - k * p),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, p, q, k: ((2 * k + 1 - x) * q - k * p) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda x, p, q, k: ((2 * k + 1) * x * q - k * p) / (k + 1)),
}
"""The polynomial of degree 1, and that of degree k + 1 by those of k - 1 and k."""


def _polynomial(name: str, first: Callable[[_Tensor], _Tensor], step: _Step, is_shifted: bool) -> None:
    @TABLE.of(getattr(aten, f"special_{'shifted_' if is_shifted else ''}{name}").n_scalar)
    def compute(x: _Tensor, degree: float) -> Any:
        degree, x = int(degree), x.to(float_dtype(x))
        if degree > _MOST:
            return NotImplemented
        x = 2 * x - 1 if is_shifted else x
        if degree <= 0:
            return torch.full_like(x, float(degree == 0))
        before, found = torch.ones_like(x), first(x)
        for k in range(1, degree):
            before, found = found, step(x, before, found, k)
        return found


for _name, (_first, _step) in _RECURRENCES.items():
    _polynomial(_name, _first, _step, False)
    if _name.startswith("chebyshev"):
        _polynomial(_name, _first, _step, True)
