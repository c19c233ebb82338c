"""Elementary functions of kernels in plain arithmetic, for devices whose driver has no library of them.

Each is a function over f32 or f64 of `arith` and of what every machine has of `math`, such as fma. Written once:
constants and the number of terms depend on the type. Errors are a few units in the last place. MLIR has
polynomials, too (math-polynomial-approximation), but the bindings register no pass for them. Upstream's
math-expand-ops makes a tangent of these functions; its hyperbolic functions and their inverses have no digits
near 0, its powers neither the sign nor most of the digits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from devscope.lowering import expansions, mlir_util
from devscope.lowering.gpu.to_llvm import call_functions
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline


def _pi(bits: int) -> Fraction:
    """By Machin's formula: pi/4 = 4 arctan 1/5 - arctan 1/239."""
    total = 0
    for factor, x in ((16, 5), (-4, 239)):
        term = (factor << bits) // x
        for n in range(1, bits, 2):
            total += term // n
            term //= -x * x
    return Fraction(total, 1 << bits)


_PI = _pi(1300)  # as many as the largest number of f64 needs, modulo pi/2
_LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393621969694")
_LN10 = Fraction("2.302585092994045684017991454684364207601101488628772976033327900967572609677352")

#: (1 + 2x) exp(x^2) erfc(x) for x >= 0 in powers of (x - 3.75) / (x + 3.75), from a Chebyshev fit.
_ERFC = """
    1.2375126308378277 -0.14024059858554938 0.0035854154855512743 0.0822767384900878
    -0.10880393014617268 0.09230432116179438 -0.0586933985052154 0.028362277412011572
    -0.009746580370510124 0.0017556258336868503 0.00029371821517467815 -0.00029015377084015535
    5.163308605504162e-05 2.2382904112880967e-05 -1.1407235659687495e-05 -9.704734488808305e-07
    1.6950491986832922e-06 -6.147665088081936e-08 -2.0146026394891003e-07 2.677684894688032e-08
    2.0314588159690856e-09 -5.3466521510044485e-09 8.30317693589323e-09 6.223563546061885e-10
    -1.7428634733048428e-09
"""


class Value:
    """A value of a function that is being written: operators append operations. Numbers become constants."""

    def __init__(self, lines: list[str], name: str, type_: str) -> None:
        self.lines, self.name, self.type = lines, name, type_

    def make(self, text: str, type_: str = "") -> Value:
        value = Value(self.lines, f"%v{len(self.lines)}", type_ or self.type)
        self.lines.append(f"{value.name} = {text}")
        return value

    def const(self, value: float | Value) -> Value:
        if isinstance(value, Value):
            return value
        is_float = self.type[0] == "f"
        literal = f"0x{bits(value, self.type):0{int(self.type[1:]) // 4}X}" if is_float else str(value)
        return self.make(f"arith.constant {literal} : {self.type}")

    def op(self, name: str, *others: float | Value) -> Value:
        operands = [self.name, *(self.const(other).name for other in others)]
        return self.make(f"{name} {', '.join(operands)} : {self.type}")

    def __add__(self, other: float | Value) -> Value:
        return self.op("arith.addf" if self.type[0] == "f" else "arith.addi", other)

    def __sub__(self, other: float | Value) -> Value:
        return self.op("arith.subf" if self.type[0] == "f" else "arith.subi", other)

    def __mul__(self, other: float | Value) -> Value:
        return self.op("arith.mulf", other)

    def __truediv__(self, other: float | Value) -> Value:
        return self.op("arith.divf", other)

    def __rsub__(self, other: float) -> Value:
        return self.const(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return self.const(other) / self

    def fma(self, factor: float | Value, summand: float | Value) -> Value:
        return self.op("math.fma", factor, summand)

    def test(self, predicate: str, other: float | Value) -> Value:
        return self.make(f"arith.cmpf {predicate}, {self.name}, {self.const(other).name} : {self.type}", "i1")

    def choose(self, yes: float | Value, no: Value) -> Value:
        """Of a condition: ``yes`` where it holds."""
        return no.make(f"arith.select {self.name}, {no.const(yes).name}, {no.name} : {no.type}")

    def cast(self, op: str, kind: str) -> Value:
        return self.to(op, kind + self.type[1:])

    def to(self, op: str, type_: str) -> Value:
        return self.make(f"arith.{op} {self.name} : {self.type} to {type_}", type_)

    def polynomial(self, coefficients: Sequence[float]) -> Value:
        """Horner's scheme; ``coefficients`` from the constant one on."""
        result = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = result.fma(self, coefficient)
        return result


def bits(value: float, type_: str) -> int:
    float_, integer = ("<f", "<I") if type_ == "f32" else ("<d", "<Q")
    return struct.unpack(integer, struct.pack(float_, value))[0]


_MANTISSA = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}
_LARGE = {"f32": 1e4, "f64": 1e9}
"""The square is so large that one more does not count."""


def _terms(x: Value, single: int, double: int) -> range:
    return range(single if x.type == "f32" else double)


def _parts(value: Fraction, type_: str) -> list[float]:
    """``value`` as an unevaluated sum of three numbers of a type."""
    found: list[float] = []
    for _ in range(3):
        unit = Fraction(2) ** (math.frexp(float(value))[1] - _MANTISSA[type_] - 1)
        found.append(float(round(value / unit) * unit))
        value -= Fraction(found[-1])
    return found


def _integer(x: Value, factor: float) -> tuple[Value, Value]:
    """The integer next to ``x`` times ``factor``, which is small, as a float and as an integer."""
    shift = 1.5 * 2.0 ** _MANTISSA[x.type]
    shifted = x.fma(factor, shift)
    return shifted - shift, shifted.cast("bitcast", "i") - bits(shift, x.type)


def _clamp(x: Value, limit: float) -> Value:
    x = x.test("olt", -limit).choose(-limit, x)
    return x.test("ogt", limit).choose(limit, x)


def _expm1_parts(x: Value, rest: Value | None = None) -> tuple[Value, Value]:
    """exp(r) - 1, and n, where x + rest = n ln 2 + r and n is an integer."""
    x = _clamp(x, (_BIAS[x.type] + _MANTISSA[x.type] + 3) * float(_LN2))  # beyond, exp is 0 or infinite
    n, number = _integer(x, float(1 / _LN2))
    high, low, _ = _parts(_LN2, x.type)
    r = n.fma(-low, n.fma(-high, x))
    r = r if rest is None else r + rest
    series = r.polynomial([1 / math.factorial(k + 2) for k in _terms(x, 6, 13)])
    return (r * r).fma(series, r), number


def _scale(x: Value, n: Value) -> Value:
    """x times 2^n in two steps, since 2^n may be too large by itself."""
    half = n.op("arith.shrsi", 1)
    for part in (half, n - half):
        x = x * (part + _BIAS[x.type]).op("arith.shli", _MANTISSA[x.type]).cast("bitcast", "f")
    return x


def _exp(x: Value, rest: Value | None = None) -> Value:
    p, n = _expm1_parts(x, rest)
    return _scale(p + 1.0, n)


def _exp2(x: Value) -> Value:
    x = _clamp(x, _BIAS[x.type] + _MANTISSA[x.type] + 3)
    n, number = _integer(x, 1.0)
    return _scale(_exp((x - n) * float(_LN2)), number)


def _zero_stays(x: Value, value: Value) -> Value:
    """``value``, but ``x`` where that is a zero, whose sign it keeps."""
    return x.test("oeq", 0.0).choose(x, value)


def _expm1(x: Value) -> Value:
    p, n = _expm1_parts(x)
    power = _scale(x.const(1.0), n)
    return _zero_stays(x, x.test("ogt", 40.0).choose(_scale(p + 1.0, n), p.fma(power, power - 1.0)))


def _half_exp(x: Value) -> Value:
    """exp(x) / 2, which is finite where exp(x) is not."""
    return _exp(x - 1.0) * (math.e / 2)


def _cosh(x: Value) -> Value:
    half = _half_exp(x.op("math.absf"))
    return half + 0.25 / half


def _sinh(x: Value) -> Value:
    a = x.op("math.absf")
    small, half = _expm1(a), _half_exp(a)
    small = (small + small / (small + 1.0)) * 0.5
    return a.test("ogt", 1.0).choose(half - 0.25 / half, small).op("math.copysign", x)


def _tanh(x: Value) -> Value:
    p = _expm1(x.op("math.absf") * -2.0)
    return (p / (p + 2.0)).op("math.copysign", x)


def _asinh(x: Value) -> Value:
    a = x.op("math.absf")
    small = _log1p(a + a * a / ((a * a + 1.0).op("math.sqrt") + 1.0))
    return a.test("ogt", _LARGE[x.type]).choose(_log(a) + float(_LN2), small).op("math.copysign", x)


def _acosh(x: Value) -> Value:
    t = x - 1.0
    small = _log1p(t + (t * (t + 2.0)).op("math.sqrt"))
    result = x.test("ogt", _LARGE[x.type]).choose(_log(x) + float(_LN2), small)
    return x.test("oge", 1.0).choose(result, x.const(math.nan))


def _atanh(x: Value) -> Value:
    a = x.op("math.absf")
    return (_log1p(a * 2.0 / (1.0 - a)) * 0.5).op("math.copysign", x)


def _log_parts(x: Value) -> tuple[Value, Value]:
    """e, and m - 1, where x = m 2^e and m is between the roots of 1/2 and 2."""
    tiny = x.test("olt", 2.0 ** (1 - _BIAS[x.type]))
    mantissa = _MANTISSA[x.type]
    y = tiny.choose(x * 2.0**mantissa, x).cast("bitcast", "i")
    e = (y - bits(math.sqrt(0.5), x.type)).op("arith.shrsi", mantissa)
    f = (y - e.op("arith.shli", mantissa)).cast("bitcast", "f") - 1.0
    e = e.cast("sitofp", "f")
    return tiny.choose(e - mantissa, e), f


def _log_series(s: Value) -> Value:
    """log m - 2 s over s, where s = (m - 1) / (m + 1)."""
    z = s * s
    return z * z.polynomial([2 / (2 * k + 3) for k in _terms(s, 5, 11)])


def _log(x: Value, base: Fraction = Fraction(1)) -> Value:
    e, f = _log_parts(x)
    s = f / (f + 2.0)
    log_m = f - s * (f - _log_series(s))
    high, low, _ = _parts(_LN2 / base, x.type)
    result = e.fma(high, e.fma(low, log_m * float(1 / base)))
    result = x.test("oeq", 0.0).choose(-math.inf, result)
    result = x.test("oeq", math.inf).choose(x, result)
    return x.test("oge", 0.0).choose(result, x.const(math.nan))


def _log1p(x: Value) -> Value:
    u = x + 1.0
    result = u.test("oeq", math.inf).choose(u, _log(u) * (x / (u - 1.0)))
    return u.test("oeq", 1.0).choose(x, result)


#: Up to where pi/2 in three parts is enough; beyond, the bits of a number in fixed point.
_NEAR = {"f32": 2.0**12, "f64": 2.0**30}
_WIDTH = {"f32": 128, "f64": 192}


def _reduce_large(x: Value) -> tuple[Value, Value]:
    """n modulo 4 and r, where the size of x, at least 1, is n pi/2 + r.

    In fixed point, with as many digits of 2/pi as the exponent asks for (M. Payne and R. Hanek, Radian reduction
    for trigonometric functions, SIGNUM Newsletter 18, 1983). Numbers of f64 are no nearer than 2^-62 to a multiple
    of pi/2 (J.-M. Muller, Elementary Functions, 2nd edition, 9.3), so that at least 64 bits of r are right.
    """
    mantissa, bias, width = _MANTISSA[x.type], _BIAS[x.type], _WIDTH[x.type]
    wide, longest = f"i{width}", f"i{width + bias - mantissa}"
    number = x.op("math.absf").cast("bitcast", "i")
    exponent = number.op("arith.shrui", mantissa).op("arith.minui", 2 * bias)  # of infinity it is more
    digits = number.op("arith.andi", 2**mantissa - 1).op("arith.ori", 2**mantissa)
    two_over_pi = Value(x.lines, "", longest).const(int(2 / _PI * 2 ** (width - 2 + bias - mantissa)))
    factor = two_over_pi.op("arith.shrui", (2 * bias - exponent).to("extui", longest)).to("trunci", wide)
    turns = digits.to("extui", wide).op("arith.muli", factor)  # of which 2^(width - 2) is pi/2
    n = (turns + 2 ** (width - 3)).op("arith.shrui", width - 2).to("trunci", number.type)
    part = turns.op("arith.shli", 2)  # signed: what n does not have
    size = part.op("math.absi")
    zeros = size.op("math.ctlz")
    top = size.op("arith.shli", zeros).op("arith.shrui", width - 64).to("trunci", "i64").to("extui", "i128")
    angle = top.op("arith.muli", int(_PI / 2 * 2**63)).op("arith.shrui", 64).to("trunci", "i64")
    power = (bias - 63 - zeros.to("trunci", number.type)).op("arith.shli", mantissa).cast("bitcast", "f")
    r = angle.to("uitofp", x.type) * power
    sign = part.op("arith.shrui", width - 1).to("trunci", "i1")
    return n, sign.choose(0.0 - r, r)


def _reduce(x: Value) -> tuple[Value, Value]:
    """n modulo 4, and r, where x = n pi/2 + r; r is NaN unless x is finite."""
    multiple, n = _integer(x, float(2 / _PI))
    r = x
    for part in _parts(_PI / 2, x.type):
        r = multiple.fma(-part, r)
    is_large = x.op("math.absf").test("ogt", _NEAR[x.type])
    x.lines.append(f"%n, %r = scf.if {is_large.name} -> ({n.type}, {r.type}) {{")
    other, rest = _reduce_large(x)
    negative = x.test("olt", 0.0)
    other, rest = negative.choose(0 - other, other), negative.choose(0.0 - rest, rest) + (x - x)
    x.lines.append(f"scf.yield {other.name}, {rest.name} : {n.type}, {r.type}")
    x.lines.append(f"}} else {{ scf.yield {n.name}, {r.name} : {n.type}, {r.type} }}")
    return Value(x.lines, "%n", n.type), Value(x.lines, "%r", r.type)


def _sine(x: Value, quarters: int) -> Value:
    """sin(x + quarters pi/2)."""
    n, r = _reduce(x)
    n = n + quarters
    z = r * r
    sine = z.polynomial([(-1.0) ** (k + 1) / math.factorial(2 * k + 3) for k in _terms(x, 4, 8)])
    cosine = z.polynomial([(-1.0) ** k / math.factorial(2 * k) for k in _terms(x, 6, 9)])
    value = n.to("trunci", "i1").choose(cosine, (r * z).fma(sine, r))
    value = n.op("arith.shrui", 1).to("trunci", "i1").choose(0.0 - value, value)
    return value if quarters else _zero_stays(x, value)


def _atan(x: Value) -> Value:
    a = x.op("math.absf")
    big = a.test("ogt", 1.0)
    t = big.choose(1.0 / a, a)
    for _ in range(2):  # tan(u / 2) from tan u
        t = t / ((t * t + 1.0).op("math.sqrt") + 1.0)
    z = t * t
    angle = t * z.polynomial([(-1.0) ** k / (2 * k + 1) for k in _terms(x, 6, 12)]) * 4.0
    return big.choose(float(_PI / 2) - angle, angle).op("math.copysign", x)


def _atan2(y: Value, x: Value) -> Value:
    a, b = y.op("math.absf"), x.op("math.absf")
    ratio = a.test("oeq", b).choose(1.0, a / b)
    angle = _atan(a.test("oeq", 0.0).choose(0.0, ratio))
    left = x.const(1.0).op("math.copysign", x).test("olt", 0.0)
    angle = left.choose(float(_PI) - angle, angle).op("math.copysign", y)
    return x.test("uno", y).choose(x + y, angle)


def _long_log(a: Value) -> tuple[Value, Value]:
    """The logarithm of a number that is not negative, as a sum of two; where it is infinite, the first alone."""
    e, f = _log_parts(a)
    d = f + 2.0
    s = f / d
    minus = 0.0 - s
    s_rest = minus.fma(f - (d - 2.0), minus.fma(d, f)) / d
    high, low, _ = _parts(_LN2, a.type)
    left, right = e * high, s * 2.0
    total = left + right
    part = total - left
    lost = (left - (total - part)) + (right - part)
    rest = e.fma(low, e.fma(high, 0.0 - left)) + lost + s_rest * 2.0 + s * _log_series(s)
    result = total + rest
    rest = rest - (result - total)
    result = a.test("olt", math.inf).choose(result, a)
    return a.test("oeq", 0.0).choose(-math.inf, result), rest


def _powf(x: Value, y: Value) -> Value:
    """Special values are those of C's pow."""
    a = x.op("math.absf")
    log, rest = _long_log(a)
    power = _clamp(y, 1e30)  # so that 1 to an infinite power is 1
    p = power * log
    rest = power.fma(rest, power.fma(log, 0.0 - p))
    rest = p.op("math.absf").test("olt", 1e4).choose(rest, p.const(0.0))
    result = _exp(p, rest)
    half = y * 0.5
    real = x.test("olt", 0.0).choose(a.test("olt", math.inf).choose(math.nan, result), result)
    result = half.op("math.floor").test("oeq", half).choose(result, result.op("math.copysign", x))
    result = y.op("math.floor").test("oeq", y).choose(result, real)
    result = x.test("uno", y).choose(x + y, result)
    result = x.test("oeq", 1.0).choose(1.0, result)
    return y.test("oeq", 0.0).choose(1.0, result)


def _remf(x: Value, y: Value) -> Value:
    """C's fmod, exactly. LLVM's backend rounds the quotient.

    Each step takes a multiple of y, or of y 2^k where the quotient would be infinite; what is left is exact.
    """
    a, b = x.op("math.absf"), y.op("math.absf")
    start = a.test("olt", math.inf).choose(a, a.const(0.0))
    divisor = b.test("ogt", 0.0).choose(b, b.const(1.0))
    loop = Value(x.lines, "%rest", x.type)
    x.lines.append(f"%last = scf.while (%rest = {start.name}) : ({x.type}) -> {x.type} {{")
    goes_on = loop.op("math.absf").test("oge", divisor)
    x.lines.append(f"scf.condition({goes_on.name}) %rest : {x.type} }} do {{ ^bb0(%rest: {x.type}):")
    part = divisor
    for _ in range(2):
        infinite = (loop / part).op("math.absf").test("oeq", math.inf)
        part = infinite.choose(part * 2.0 ** (_BIAS[x.type] - 27), part)
    step = (0.0 - (loop / part).op("math.trunc")).fma(part, loop)
    x.lines.append(f"scf.yield {step.name} : {x.type} }}")
    last = Value(x.lines, "%last", x.type)
    last = last.test("olt", 0.0).choose(last + divisor, last).op("math.copysign", x)
    last = b.test("ogt", 0.0).choose(last, x.const(math.nan))
    return a.test("olt", math.inf).choose(last, x.const(math.nan))


def _cbrt(x: Value) -> Value:
    a = x.op("math.absf")
    y = _exp(_log(a) / 3.0)
    y = y - (y - a / (y * y)) / 3.0  # Newton
    finite = (a * 0.0).test("oeq", 0.0).choose(y, a)
    return a.test("oeq", 0.0).choose(x, finite.op("math.copysign", x))


def _erfc(x: Value) -> Value:
    a = x.op("math.absf")
    a = a.test("ogt", 30.0).choose(30.0, a)
    t = (a - 3.75) / (a + 3.75)
    value = t.polynomial([float(term) for term in _ERFC.split()]) / (a * 2.0 + 1.0) * _exp(0.0 - a * a)
    return x.test("olt", 0.0).choose(2.0 - value, value)


def _erf(x: Value) -> Value:
    z = x * x
    series = [(-1.0) ** k / (math.factorial(k) * (2 * k + 1)) for k in _terms(x, 10, 19)]
    small = x * z.polynomial(series) * (2 / math.sqrt(math.pi))
    return z.test("olt", 1.0).choose(small, 1.0 - _erfc(x))


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "acos": lambda x: _atan(((1.0 - x) / (x + 1.0)).op("math.sqrt")) * 2.0,
    "acosh": _acosh,
    "asin": lambda x: _atan(x / ((1.0 - x) * (x + 1.0)).op("math.sqrt")),
    "asinh": _asinh,
    "atan": _atan,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cos": lambda x: _sine(x, 1),
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
    "sin": lambda x: _sine(x, 0),
    "sinh": _sinh,
    "tanh": _tanh,
}
_OF_TWO: dict[str, Callable[[Value, Value], Value]] = {"atan2": _atan2, "powf": _powf, "remf": _remf}


def math_function(symbol: str, op: str, operands: Sequence[str], result: str) -> str:
    """A ``func.func`` that computes an operation of `math`, as text, which has that operation if need be.

    ``operands`` and ``result`` are types.
    """
    lines: list[str] = []
    arguments = [Value(lines, f"%arg{number}", type_) for number, type_ in enumerate(operands)]
    name = op.partition(".")[2]
    if name in _OF_TWO and result in _MANTISSA:
        value = _OF_TWO[name](arguments[0], arguments[1])
    elif name in _FUNCTIONS and result in _MANTISSA:
        value = _FUNCTIONS[name](arguments[0])
    else:
        names = ", ".join(argument.name for argument in arguments)
        value = Value(lines, "%result", result)
        lines.append(f'%result = "{op}"({names}) : ({", ".join(operands)}) -> {result}')
    parameters = ", ".join(f"{argument.name}: {argument.type}" for argument in arguments)
    body = "\n  ".join([*lines, f"return {value.name} : {result}"])
    return f"func.func @{symbol}({parameters}) -> {result} {{\n  {body}\n}}\n"


def _intrinsic(op: Any) -> str:
    """LLVM's intrinsic for an operation that MLIR makes a call of the vendor's library."""
    type_ = op.results[0].type
    name = op.name.removeprefix("arith.").removesuffix("f")
    return expansions.by_elements(op) or f'%r = "llvm.intr.{name}"(%0, %1) : ({type_}, {type_}) -> {type_}'


_EXPANSIONS = {
    **expansions.FOR_ALL,
    **dict.fromkeys((f"arith.{name}" for name in ("maximumf", "maxnumf", "minimumf", "minnumf")), _intrinsic),
    "arith.remf": expansions.by_wide_elements,
    "math.sincos": expansions.sincos,
}


def call_math_functions(gpu_modules: Any, run_passes: RunPasses) -> None:
    """Every operation of `math` becomes a call of a function of ours: MLIR would call the vendor's library."""
    expansions.expand(mlir_util.walk(gpu_modules), _EXPANSIONS)
    run_passes(gpu_modules.operation, pipeline("gpu/math"))
    texts: dict[str, str] = {}

    def symbol_of(op: Any) -> str | None:
        if not op.name.startswith("math.") and op.name != "arith.remf":
            return None
        operands, result = [str(operand.type) for operand in op.operands], str(op.results[0].type)
        symbol = "_".join(["devscope", op.name.partition(".")[2], *operands])
        texts.setdefault(symbol, math_function(symbol, op.name, operands, result))
        return symbol

    left = [op for op in mlir_util.walk(gpu_modules) if op.name.startswith("math.")]
    expansions.expand(left, dict.fromkeys((op.name for op in left), expansions.by_elements))
    call_functions(gpu_modules, symbol_of)
    functions = ir.Module.parse("".join(texts.values()), gpu_modules.context)
    run_passes(functions.operation, pipeline("gpu/to_llvm"))
    for function in mlir_util.children(functions.operation):
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", gpu_modules.context)
        gpu_modules.body.append(function)
