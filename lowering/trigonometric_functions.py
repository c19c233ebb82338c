"""Sine, tangent and their inverses, as `elementary_functions` has the others."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from devscope.lowering.arithmetic import Value
from devscope.lowering.function_parts import PI, integer, parts, polynomial, zero_stays

_NEAR = {"f32": 2.0**15, "f64": 2.0**30}
"""Up to where pi/2 in three parts is enough."""


def is_far(x: Value) -> Value:
    """Where a number is so large that `reduce_near` is not for it."""
    return x.size().test("ogt", _NEAR[x.element])


def reduce_near(x: Value) -> tuple[Value, Value]:
    """n and r, where x = n pi/2 + r; r is NaN unless x is finite."""
    multiple, n = integer(x, float(2 / PI))
    r = x
    for part in parts(PI / 2, x.element):
        r = multiple.fma(-part, r)
    return n, r


Reduction = Callable[[Value], tuple[Value, Value]]


def _sine_and_cosine(r: Value) -> tuple[Value, Value]:
    """Between -pi/4 and pi/4."""
    z = r * r
    cosine = z.fma(z.fma(polynomial(z, "cos"), -0.5), 1.0)
    return (r * z).fma(polynomial(z, "sin"), r), cosine


def sine(x: Value, quarters: int, reduce: Reduction = reduce_near) -> Value:
    """sin(x + quarters pi/2)."""
    n, r = reduce(x)
    n = n + quarters if quarters else n
    first, second = _sine_and_cosine(r)
    value = _bit(n).choose(second, first)
    value = _bit(n.op("arith.shrui", 1)).choose(0.0 - value, value)
    return value if quarters else zero_stays(x, value)


def tangent(x: Value, reduce: Reduction = reduce_near) -> Value:
    n, r = reduce(x)
    first, second = _sine_and_cosine(r)
    odd = _bit(n)
    return zero_stays(x, odd.choose(0.0 - second, first) / odd.choose(first, second))


def _bit(n: Value) -> Value:
    return n.to("trunci", "i1")


def _atan_to_1(t: Value) -> Value:
    """Of a number between 0 and 1."""
    z = t * t
    return (t * z).fma(polynomial(z, "atan"), t)


def _minus(constant: Fraction, x: Value) -> Value:
    """Of a constant in twice as many digits."""
    high, low, _ = parts(constant, x.element)
    return low - x + high


def atan(x: Value) -> Value:
    a = x.size()
    big = a.test("ogt", 1.0)
    angle = _atan_to_1(big.choose(1.0 / a, a))
    return big.choose(_minus(PI / 2, angle), angle).signed(x)


def atan2(y: Value, x: Value) -> Value:
    a, b = y.size(), x.size()
    steep = a.test("ogt", b)
    low, high = steep.choose(b, a), steep.choose(a, b)
    ratio = low.test("oeq", high).choose(1.0, low / high)  # of infinities, too
    angle = _atan_to_1(high.test("oeq", 0.0).choose(0.0, ratio))
    angle = steep.choose(_minus(PI / 2, angle), angle)
    left = x.const(1.0).signed(x).test("olt", 0.0)
    angle = left.choose(_minus(PI, angle), angle).signed(y)
    return x.test("uno", y).choose(x + y, angle)


def _asin_parts(x: Value) -> tuple[Value, Value]:
    """Where the size of x is above 1/2, and asin of it, or half of acos there."""
    a = x.size()
    big = a.test("ogt", 0.5)
    half = (1.0 - a) * 0.5
    s, z = big.choose(half.op("math.sqrt"), a), big.choose(half, a * a)
    return big, (s * z).fma(polynomial(z, "asin"), s)


def asin(x: Value) -> Value:
    big, part = _asin_parts(x)
    return big.choose(_minus(PI / 2, part * 2.0), part).signed(x)


def acos(x: Value) -> Value:
    big, part = _asin_parts(x)
    twice = part * 2.0
    far = x.test("olt", 0.0).choose(_minus(PI, twice), twice)
    return big.choose(far, _minus(PI / 2, part.signed(x)))
