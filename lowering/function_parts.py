"""What elementary functions are made of: pi, polynomials, constants as sums of numbers, integers near a number."""

from __future__ import annotations

import math
from fractions import Fraction

from devscope.lowering.arithmetic import MANTISSA, Value, bits
from devscope.lowering.polynomials import COEFFICIENTS


def _pi(bits: int) -> Fraction:
    """By Machin's formula: pi/4 = 4 arctan 1/5 - arctan 1/239."""
    total = 0
    for factor, x in ((16, 5), (-4, 239)):
        term = (factor << bits) // x
        for n in range(1, bits, 2):
            total += term // n
            term //= -x * x
    return Fraction(total, 1 << bits)


PI = _pi(1300)  # as many as the largest number of f64 needs, modulo pi/2


def polynomial(x: Value, name: str) -> Value:
    return x.polynomial(COEFFICIENTS[f"{name} {x.element}"])


def parts(value: Fraction, type_: str) -> list[float]:
    """``value`` as an unevaluated sum of three numbers of a type."""
    found: list[float] = []
    for _ in range(3):
        unit = Fraction(2) ** (math.frexp(float(value))[1] - MANTISSA[type_] - 1)
        found.append(float(round(value / unit) * unit))
        value -= Fraction(found[-1])
    return found


def integer(x: Value, factor: float) -> tuple[Value, Value]:
    """The integer next to ``x`` times ``factor``, which is small, as a float and as an integer."""
    shift = 1.5 * 2.0 ** MANTISSA[x.element]
    shifted = x.fma(factor, shift)
    return shifted - shift, shifted.cast("bitcast", "i") - bits(shift, x.element)


def zero_stays(x: Value, value: Value) -> Value:
    """``value``, but ``x`` where that is a zero, whose sign it keeps."""
    return x.test("oeq", 0.0).choose(x, value)
