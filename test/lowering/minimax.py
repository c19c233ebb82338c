"""Coefficients of the polynomials in lowering/elementary_functions.py, by the exchange algorithm of Remez.

    python test/lowering/minimax.py [NAME...]

prints them, from the constant one on, with the largest weighted error. A polynomial P stands for a function g so
that the largest weight * |P - g| is least; the weight makes that the relative error of what P is part of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath

mpmath.mp.prec = 200
_MP: Any = mpmath.mp
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    function: Function
    weight: Function
    degree: int
    low: Any
    high: Any


def _z(function: Function) -> Function:
    """Of z = x^2."""
    return lambda z: function(_MP.sqrt(z))


def _odd(function: Function) -> tuple[Function, Function]:
    """(f(x) / x - 1) / x^2 of an odd function, and the weight."""
    return _z(lambda x: (function(x) / x - 1) / x**2), _z(lambda x: x**3 / function(x))


def _expm1(r: Any) -> Any:
    return _MP.expm1(r)


def _exp2m1(r: Any) -> Any:
    return _expm1(r * _MP.log(2))


_EXP = (lambda r: (_expm1(r) - r) / r**2, lambda r: r**2 / abs(_expm1(r)))
_EXP2M1 = (lambda r: _exp2m1(r) / r, lambda r: abs(r / _exp2m1(r)))
_LOG = (lambda f: (_MP.log1p(f) - f + f**2 / 2) / f**3, lambda f: abs(f**3 / _MP.log1p(f)))
_LOG_RATIO = (_z(lambda s: (2 * _MP.atanh(s) / s - 2) / s**2), _z(lambda s: s**3 / _MP.atanh(s)))
_COS = (_z(lambda r: (_MP.cos(r) - 1 + r**2 / 2) / r**4), _z(lambda r: r**4 / _MP.cos(r)))
_LOG2_ERFC = (lambda a: _MP.log(_MP.erfc(a), 2) / a, lambda a: a * _MP.log(2) * _MP.erfc(a) / _MP.erf(a))
_HALF_LN2 = _MP.log(2) / 2 * (1 + _MP.mpf(2) ** -12)
_EIGHTH = (_MP.pi / 4 + _MP.mpf(2) ** -5) ** 2  # reductions are that near to pi/4
_RATIO = ((_MP.sqrt(2) - 1) / (_MP.sqrt(2) + 1)) ** 2


def _of_erfc(t: Any) -> Any:
    a = _MP.mpf(3.75) * (1 + t) / (1 - t)
    return (1 + 2 * a) * _MP.exp(a**2) * _MP.erfc(a)


def _t(a: float) -> Any:
    return (a - _MP.mpf(3.75)) / (a + _MP.mpf(3.75))


FITS = {
    "exp f32": Fit(*_EXP, 4, -_HALF_LN2, _HALF_LN2),
    "exp f64": Fit(*_EXP, 10, -_HALF_LN2, _HALF_LN2),
    "exp2m1 f32": Fit(*_EXP2M1, 5, -_MP.mpf(0.5), _MP.mpf(0.5)),
    "exp2m1 f64": Fit(*_EXP2M1, 10, -_MP.mpf(0.5), _MP.mpf(0.5)),
    "log f32": Fit(*_LOG, 7, _MP.sqrt(0.5) - 1, _MP.sqrt(2) - 1),
    "log ratio f64": Fit(*_LOG_RATIO, 6, 0, _RATIO),
    "sin f32": Fit(*_odd(_MP.sin), 2, 0, _EIGHTH),
    "sin f64": Fit(*_odd(_MP.sin), 5, 0, _EIGHTH),
    "cos f32": Fit(*_COS, 2, 0, _EIGHTH),
    "cos f64": Fit(*_COS, 5, 0, _EIGHTH),
    "atan f32": Fit(*_odd(_MP.atan), 8, 0, 1),
    "atan f64": Fit(*_odd(_MP.atan), 19, 0, 1),
    "asin f32": Fit(*_odd(_MP.asin), 4, 0, _MP.mpf(0.25)),
    "asin f64": Fit(*_odd(_MP.asin), 12, 0, _MP.mpf(0.25)),
    "erf f32": Fit(_z(lambda x: _MP.erf(x) / x), _z(lambda x: x / _MP.erf(x)), 6, 0, 1),
    "erf f64": Fit(_z(lambda x: _MP.erf(x) / x), _z(lambda x: x / _MP.erf(x)), 11, 0, 1),
    "log2 erfc f32": Fit(*_LOG2_ERFC, 8, 0, 4),
    "erfc f32": Fit(_of_erfc, lambda t: 1 / _of_erfc(t), 10, -1, _t(11)),
    "erfc f64": Fit(_of_erfc, lambda t: 1 / _of_erfc(t), 22, -1, _t(30)),
    "pow log2": Fit(_z(lambda s: 2 * _MP.atanh(s) / s / _MP.log(2)), lambda z: 1, 4, 0, _RATIO),
    "pow exp2": Fit(lambda f: _MP.power(2, f), lambda f: _MP.power(2, -f), 6, -_MP.mpf(0.5), _MP.mpf(0.5)),
}


def minimax(fit: Fit, points: int = 600) -> tuple[list[Any], Any]:
    """Coefficients, from the constant one on, and the largest weighted error.

    Points of the ends, where g may be 0 / 0, are left out.
    """
    count = fit.degree + 2
    middle, half = (_MP.mpf(fit.high) + fit.low) / 2, (_MP.mpf(fit.high) - fit.low) / 2
    grid = [middle - half * _MP.cos(_MP.pi * (k + _MP.mpf(0.5)) / points) for k in range(points)]
    # (x - middle) / half, so that equations are well-conditioned
    known = [((x - middle) / half, fit.function(x), fit.weight(x)) for x in grid]
    chosen = [round((points - 1) * (1 - _MP.cos(_MP.pi * k / (count - 1))) / 2) for k in range(count)]
    scaled: list[Any] = []
    largest = _MP.mpf(0)
    for _ in range(20):
        rows = [
            [*(known[i][0] ** k for k in range(count - 1)), (-1) ** n / known[i][2]] for n, i in enumerate(chosen)
        ]
        *scaled, level = _MP.lu_solve(_MP.matrix(rows), _MP.matrix([known[i][1] for i in chosen]))
        errors = [(_MP.polyval(scaled[::-1], u) - g) * w for u, g, w in known]
        largest = max(map(abs, errors))
        if largest < abs(level) * 1.001:
            break
        chosen = _extrema(errors, count)
    shifted = [_MP.mpf(0)] * (count - 1)
    for coefficient in reversed(scaled):  # Horner, by polynomials in x
        lower = [-middle / half * c for c in shifted]
        higher = [_MP.mpf(0), *(c / half for c in shifted[:-1])]
        shifted = [a + b for a, b in zip(lower, higher, strict=True)]
        shifted[0] += coefficient
    return shifted, largest


def _extrema(errors: list[Any], count: int) -> list[int]:
    """Where errors of alternating signs are largest."""
    best: list[int] = []
    for index, error in enumerate(errors):
        if best and (error > 0) == (errors[best[-1]] > 0):
            if abs(error) > abs(errors[best[-1]]):
                best[-1] = index
        else:
            best.append(index)
    while len(best) > count:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    return best


if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        coefficients, error = minimax(FITS[name])
        print(f"{name}: error 2^{float(_MP.log(error, 2)):.1f}")
        print("   ", " ".join(repr(float(c)) for c in coefficients))
