"""Elementary functions in plain arithmetic without branches: of numbers and of vectors of any shape.

Each is a function over f32 or f64, written once: constants and polynomials depend on the type. Special values are
those of C; errors are in docs/accuracy.md. Upstream's polynomials (math-polynomial-approximation) have no pass in
the bindings; its math-expand-ops has hyperbolic functions and their inverses that have no digits near 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from devscope.lowering import trigonometric_functions as trigonometric
from devscope.lowering.arithmetic import BIAS, MANTISSA, Value, bits
from devscope.lowering.function_parts import integer, parts, polynomial, zero_stays
from devscope.lowering.polynomials import COEFFICIENTS

_LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393621969694")
_LN10 = Fraction("2.302585092994045684017991454684364207601101488628772976033327900967572609677352")

_LARGE = {"f32": 1e4, "f64": 1e9}
"""The square is so large that one more does not count."""


def _clamp(x: Value, limit: float) -> Value:
    x = x.test("olt", -limit).choose(-limit, x)
    return x.test("ogt", limit).choose(limit, x)


def _expm1_parts(x: Value, rest: Value | None = None) -> tuple[Value, Value]:
    """exp(r) - 1, and n, where x + rest = n ln 2 + r and n is an integer."""
    n, number = integer(x, float(1 / _LN2))
    high, low, _ = parts(_LN2, x.element)
    r = n.fma(-low, n.fma(-high, x))
    r = r if rest is None else r + rest
    return (r * r).fma(polynomial(r, "exp"), r), number


def _exp2m1_parts(x: Value) -> tuple[Value, Value]:
    """2^r - 1, and n, where x = n + r and n is an integer."""
    n, number = integer(x, 1.0)
    r = x - n
    return r * polynomial(r, "exp2m1"), number


def _exp_range(x: Value) -> Value:
    """Beyond, exp is 0 or infinite."""
    return _clamp(x, (BIAS[x.element] + MANTISSA[x.element] + 3) * float(_LN2))


def _power_of_2(n: Value) -> Value:
    """2^n, which is a normal number."""
    element = f"f{n.element[1:]}"
    return (n + BIAS[element]).op("arith.shli", MANTISSA[element]).cast("bitcast", "f")


def _scale(x: Value, n: Value) -> Value:
    """x times 2^n in two steps, since 2^n may be too large by itself."""
    half = n.op("arith.shrsi", 1)
    return x * _power_of_2(half) * _power_of_2(n - half)


def _exp(x: Value, rest: Value | None = None) -> Value:
    p, n = _expm1_parts(_exp_range(x), rest)
    return _scale(p + 1.0, n)


def _exp2(x: Value) -> Value:
    p, n = _exp2m1_parts(_clamp(x, BIAS[x.element] + MANTISSA[x.element] + 3))
    return _scale(p + 1.0, n)


def _moderate_exp2m1(x: Value) -> Value:
    """2^x - 1 where 2^x and its inverse are small numbers; 0 of zeros of both signs."""
    p, n = _exp2m1_parts(x)
    power = _power_of_2(n)
    return p.fma(power, power - 1.0)


def _expm1(x: Value) -> Value:
    p, n = _expm1_parts(_exp_range(x))
    power = _scale(x.const(1.0), n)
    return zero_stays(x, x.test("ogt", 40.0).choose(_scale(p + 1.0, n), p.fma(power, power - 1.0)))


def _half_exp(x: Value) -> Value:
    """exp(x) / 2, which is finite where exp(x) is not."""
    p, n = _expm1_parts(_exp_range(x))
    return _scale(p + 1.0, n - 1)


def _cosh(x: Value) -> Value:
    half = _half_exp(x.size())
    return half + 0.25 / half


def _sinh(x: Value) -> Value:
    """By expm1, or by exp where that is so large that 1 less does not count."""
    a = x.size()
    p, n = _expm1_parts(_exp_range(a))
    power = _power_of_2(n.op("arith.minsi", BIAS[x.element]))
    e = p.fma(power, power - 1.0)
    small = (e + e / (e + 1.0)) * 0.5
    return a.test("ogt", 40.0).choose(_scale(p + 1.0, n - 1), small).signed(x)


def _tanh(x: Value) -> Value:
    a = x.size()
    p = _moderate_exp2m1(a.test("ogt", 20.0).choose(20.0, a) * float(-2 / _LN2))  # beyond, the result is 1
    return (p / (p + 2.0)).signed(x)


def _asinh(x: Value) -> Value:
    a = x.size()
    small = _log1p(a + a * a / ((a * a + 1.0).op("math.sqrt") + 1.0))
    return a.test("ogt", _LARGE[x.element]).choose(_log(a) + float(_LN2), small).signed(x)


def _acosh(x: Value) -> Value:
    t = x - 1.0
    small = _log1p(t + (t * (t + 2.0)).op("math.sqrt"))
    result = x.test("ogt", _LARGE[x.element]).choose(_log(x) + float(_LN2), small)
    return x.test("oge", 1.0).choose(result, x.const(math.nan))


def _atanh(x: Value) -> Value:
    a = x.size()
    return (_log1p(a * 2.0 / (1.0 - a)) * 0.5).signed(x)


def _log_parts(x: Value) -> tuple[Value, Value]:
    """e, and m - 1, where x = m 2^e and m is between the roots of 1/2 and 2."""
    tiny = x.test("olt", 2.0 ** (1 - BIAS[x.element]))
    mantissa = MANTISSA[x.element]
    y = tiny.choose(x * 2.0**mantissa, x).cast("bitcast", "i")
    e = (y - bits(math.sqrt(0.5), x.element)).op("arith.shrsi", mantissa)
    f = (y - e.op("arith.shli", mantissa)).cast("bitcast", "f") - 1.0
    e = e.cast("sitofp", "f")
    return tiny.choose(e - mantissa, e), f


def _log_series(s: Value) -> Value:
    """log m - 2 s over s, where s = (m - 1) / (m + 1)."""
    z = s * s
    return z * polynomial(z, "log ratio")


def _log(x: Value, base: Fraction = Fraction(1)) -> Value:
    e, f = _log_parts(x)
    high, low, _ = parts(_LN2 / base, x.element)
    if x.element == "f32":  # vectors add and multiply faster than they divide
        z = f * f
        rest = z.fma(-0.5, z * f * polynomial(f, "log"))
        log_m = f + rest
    else:
        s = f / (f + 2.0)
        log_m = f - s * (f - _log_series(s))
    result = e.fma(high, e.fma(low, log_m * float(1 / base) if base != 1 else log_m))
    result = x.test("oeq", 0.0).choose(-math.inf, result)
    result = x.test("oeq", math.inf).choose(x, result)
    return x.test("oge", 0.0).choose(result, x.const(math.nan))


def _log1p(x: Value) -> Value:
    u = x + 1.0
    result = u.test("oeq", math.inf).choose(u, _log(u) * (x / (u - 1.0)))
    return u.test("oeq", 1.0).choose(x, result)


def _long_log(a: Value) -> tuple[Value, Value]:
    """The logarithm of a number that is not negative, as a sum of two; where it is infinite, the first alone."""
    e, f = _log_parts(a)
    d = f + 2.0
    s = f / d
    minus = 0.0 - s
    s_rest = minus.fma(f - (d - 2.0), minus.fma(d, f)) / d
    high, low, _ = parts(_LN2, a.element)
    left, right = e * high, s * 2.0
    total = left + right
    part = total - left
    lost = (left - (total - part)) + (right - part)
    rest = e.fma(low, e.fma(high, 0.0 - left)) + lost + s_rest * 2.0 + s * _log_series(s)
    result = total + rest
    rest = rest - (result - total)
    result = a.test("olt", math.inf).choose(result, a)
    return a.test("oeq", 0.0).choose(-math.inf, result), rest


def _power(a: Value, y: Value) -> Value:
    """Of a number that is not negative, to a finite power, by its logarithm in twice as many digits."""
    log, rest = _long_log(a)
    p = y * log
    rest = y.fma(rest, y.fma(log, 0.0 - p))
    rest = p.size().test("olt", 1e4).choose(rest, p.const(0.0))
    return _exp(p, rest)


def _power_in_double(a: Value, y: Value) -> Value:
    """`_power` of f32, by a logarithm to base 2 in f64, where 10 more bits are enough.

    There every number of f32 is a normal one, and so are their powers that are not 0 or infinite in f32.
    """
    x, y = a.to("extf", "f64"), y.to("extf", "f64")
    number, bias, mantissa = x.cast("bitcast", "i"), BIAS["f64"], MANTISSA["f64"]
    # All integers here are positive: AVX2 has no other shifts and conversions of 64 bits.
    raised = (number + ((bias << mantissa) - bits(math.sqrt(0.5), "f64"))).op("arith.shrui", mantissa)
    e = raised.op("arith.ori", bits(2.0**mantissa, "f64")).cast("bitcast", "f") - (2.0**mantissa + bias)
    m = (number - raised.op("arith.shli", mantissa) + (bias << mantissa)).cast("bitcast", "f")
    s = (m - 1.0) / (m + 1.0)
    log = s.fma((s * s).polynomial(COEFFICIENTS["pow log2"]), e)
    log = x.test("olt", math.inf).choose(log, x)
    log = x.test("oeq", 0.0).choose(-math.inf, log)
    p = _clamp(log * y, 200.0)
    n, power = integer(p, 1.0)
    value = (p - n).polynomial(COEFFICIENTS["pow exp2"]).cast("bitcast", "i") + power.op("arith.shli", mantissa)
    return value.cast("bitcast", "f").to("truncf", "f32")


def _powf(x: Value, y: Value) -> Value:
    """Special values are those of C's pow."""
    a, finite = x.size(), _clamp(y, 1e30)  # so that 1 to an infinite power is 1
    result = _power_in_double(a, finite) if x.element == "f32" else _power(a, finite)
    half = y * 0.5
    real = x.test("olt", 0.0).choose(a.test("olt", math.inf).choose(math.nan, result), result)
    result = half.op("math.floor").test("oeq", half).choose(result, result.signed(x))
    result = y.op("math.floor").test("oeq", y).choose(result, real)
    result = x.test("uno", y).choose(x + y, result)
    result = x.test("oeq", 1.0).choose(1.0, result)
    return y.test("oeq", 0.0).choose(1.0, result)


def _cbrt(x: Value) -> Value:
    a = x.size()
    y = _exp(_log(a) / 3.0)
    y = y - (y - a / (y * y)) / 3.0  # Newton
    finite = (a * 0.0).test("oeq", 0.0).choose(y, a)
    return a.test("oeq", 0.0).choose(x, finite.signed(x))


def _large_erfc(a: Value) -> Value:
    """Of a number that is not negative; near 0 it has few digits."""
    end = {"f32": 11.0, "f64": 30.0}[a.element]
    a = a.test("ogt", end).choose(end, a)
    t = (a - 3.75) / (a + 3.75)
    square = a * (0.0 - a)
    power = _exp(square, (0.0 - a).fma(a, 0.0 - square))
    return polynomial(t, "erfc") / (a * 2.0 + 1.0) * power


def _small_erf(x: Value) -> Value:
    """Between -1 and 1."""
    return x * polynomial(x * x, "erf")


def _erfc(x: Value) -> Value:
    a = x.size()
    large = _large_erfc(a)
    value = x.test("olt", 0.0).choose(2.0 - large, large)
    return a.test("olt", 0.5).choose(1.0 - _small_erf(x), value)


def _erf(x: Value) -> Value:
    a = x.size()
    if x.element == "f32":
        a = a.test("ogt", 4.0).choose(4.0, a)  # beyond, the result is 1
        return _moderate_exp2m1(a * polynomial(a, "log2 erfc")).signed(x)
    return a.test("olt", 1.0).choose(_small_erf(a), 1.0 - _large_erfc(a)).signed(x)


def remainder_near(x: Value, y: Value) -> tuple[Value, Value]:
    """Where the quotient has more digits than a number, and C's fmod, exactly, elsewhere.

    There the quotient, rounded, is at most the next integer, and what it leaves of x has no more digits than y.
    """
    a, b = x.size(), y.size()
    quotient = a / b
    rest = (0.0 - quotient.op("math.trunc")).fma(b, a)
    rest = rest.test("olt", 0.0).choose(rest + b, rest)
    return quotient.test("oge", 2.0 ** (MANTISSA[x.element] + 1)), a.test("olt", b).choose(a, rest).signed(x)


OF_ONE: dict[str, Callable[[Value], Value]] = {
    "acos": trigonometric.acos,
    "acosh": _acosh,
    "asin": trigonometric.asin,
    "asinh": _asinh,
    "atan": trigonometric.atan,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cos": lambda x: trigonometric.sine(x, 1),
    "cosh": _cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log10": lambda x: _log(x, _LN10),
    "log1p": _log1p,
    "log2": lambda x: _log(x, _LN2),
    "sin": lambda x: trigonometric.sine(x, 0),
    "sinh": _sinh,
    "tan": trigonometric.tangent,
    "tanh": _tanh,
}
OF_TWO: dict[str, Callable[[Value, Value], Value]] = {"atan2": trigonometric.atan2, "powf": _powf}
