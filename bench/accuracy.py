"""How accurate every function of the ``math`` dialect is, on the host and on ``opencl:0``.

The largest error in units in the last place (ulp) of the result, over the whole range of a type: random bit
patterns, the neighbourhoods where functions lose digits (0, 1, -1, multiples of pi/2, the ends of the range), and
special values (zeros of both signs, subnormal numbers, infinities, NaN), which must be right. The reference of f64
is mpmath in 200 bits, that of narrower types numpy and scipy in f64; for special values it is numpy, which follows
IEEE 754 and C. The targets are those of docs/accuracy.md.

    python bench/accuracy.py [--points 4000] [--types f32,f64,f16,bf16] [--targets cpu,opencl] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
from scipy import special

import devscope

Array = np.ndarray[Any, np.dtype[Any]]

mpmath.mp.prec = 200
_MP: Any = mpmath.mp
_NP: Any = np

DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

COLUMNS = [
    (target, type_) for target in ("cpu", "opencl") for type_ in DTYPES if (target, type_) != ("opencl", "bf16")
]
"""Targets and the types that they compute with."""

LIMIT = 4.0
"""Largest error of a function in ulp, unless `LIMITS` has another for it."""

LIMITS: dict[str, float] = {
    **dict.fromkeys(("absf", "ceil", "copysign", "floor", "round", "roundeven", "trunc"), 0.0),
    "clampf": 0.0,
    "exp": 1.0,
    "fma": 0.51,  # of half precision is one of f32, rounded again
    "sqrt": 0.5,
}


@dataclass(frozen=True)
class Function:
    """``exact`` is the function in mpmath, ``special`` in numpy, for arguments that are special values."""

    exact: Callable[..., Any]
    special: Callable[..., Any]
    arity: int = 1


_LONG = np.longdouble


def _round(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + np.where(np.abs(x) < 2.0**52, 0.5, 0)), x)


def _larger(x: Any, y: Any) -> Any:
    """The larger one, where +0 is larger than -0."""
    return np.where(x == y, np.where(np.signbit(x), y, x), np.maximum(x, y))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _cbrt(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


FUNCTIONS: dict[str, Function] = {
    **{
        name: Function(getattr(_MP, exact or name), getattr(_NP, numpy or name))
        for name, exact, numpy in (
            ("acos", "", "arccos"),
            ("acosh", "", "arccosh"),
            ("asin", "", "arcsin"),
            ("asinh", "", "arcsinh"),
            ("atan", "", "arctan"),
            ("atanh", "", "arctanh"),
            ("ceil", "", ""),
            ("cos", "", ""),
            ("cosh", "", ""),
            ("exp", "", ""),
            ("expm1", "", ""),
            ("floor", "", ""),
            ("log", "", ""),
            ("log10", "", ""),
            ("log1p", "", ""),
            ("sin", "", ""),
            ("sinh", "", ""),
            ("sqrt", "", ""),
            ("tan", "", ""),
            ("tanh", "", ""),
        )
    },
    "absf": Function(abs, np.abs),
    "cbrt": Function(_cbrt, np.cbrt),
    "erf": Function(_MP.erf, special.erf),
    "erfc": Function(lambda x: _MP.erfc(min(x, 100)), special.erfc),
    "exp2": Function(lambda x: _MP.power(2, x), np.exp2),
    "log2": Function(lambda x: _MP.log(x) / _MP.log(2), np.log2),
    "round": Function(lambda x: _MP.sign(x) * _MP.floor(abs(x) + 0.5), _round),
    "roundeven": Function(_MP.nint, np.rint),
    "rsqrt": Function(lambda x: 1 / _MP.sqrt(x), _rsqrt),
    "trunc": Function(lambda x: _MP.sign(x) * _MP.floor(abs(x)), np.trunc),
    "atan2": Function(_MP.atan2, np.arctan2, 2),
    "copysign": Function(lambda x, y: abs(x) if y > 0 else -abs(x), np.copysign, 2),
    "powf": Function(_MP.power, np.power, 2),
    "clampf": Function(lambda x, y, z: max(min(x, z), y), lambda x, y, z: _larger(-_larger(-x, -z), y), 3),
    "fma": Function(lambda x, y, z: x * y + z, lambda x, y, z: _LONG(x) * _LONG(y) + _LONG(z), 3),
}
#: Two results of one operation; a float raised to an i32.
_SINCOS, _FPOWI = "sincos", "fpowi"
RESULTS = [*FUNCTIONS, f"{_SINCOS}.0", f"{_SINCOS}.1", _FPOWI]
#: Operations whose result is a truth value, and what they ask of a number and of the least normal one of its type.
PREDICATES: dict[str, Callable[[Any, float], Any]] = {
    "isfinite": lambda x, _: np.isfinite(x),
    "isinf": lambda x, _: np.isinf(x),
    "isnan": lambda x, _: np.isnan(x),
    "isnormal": lambda x, least: np.isfinite(x) & (np.abs(x) >= least),
}


def function_of(result: str) -> Function:
    if result.startswith(_SINCOS):
        return FUNCTIONS["sin" if result.endswith("0") else "cos"]
    if result == _FPOWI:
        return Function(lambda x, n: _MP.power(x, int(n)), lambda x, n: np.power(x, np.asarray(n, np.float64)), 2)
    return FUNCTIONS[result]


def program(type_: str, count: int) -> str:
    """A module whose ``main`` gives all results of `RESULTS`, from three tensors and one of i32."""
    t, i = f"tensor<{count}x{type_}>", f"tensor<{count}xi32>"
    lines: list[str] = []
    for name, function in FUNCTIONS.items():
        operands = ", ".join(["%x", "%y", "%z"][: function.arity])
        lines.append(f'%{name} = "math.{name}"({operands}) : ({", ".join([t] * function.arity)}) -> {t}')
    lines.append(f'%sincos.0, %sincos.1 = "math.sincos"(%x) : ({t}) -> ({t}, {t})')
    lines.append(f'%fpowi = "math.fpowi"(%x, %n) : ({t}, {i}) -> {t}')
    truths = f"tensor<{count}xi1>"
    lines += [f'%{name} = "math.{name}"(%x) : ({t}) -> {truths}' for name in PREDICATES]
    values = ", ".join(f"%{name}" for name in (*RESULTS, *PREDICATES))
    types = ", ".join([t] * len(RESULTS) + [truths] * len(PREDICATES))
    body = "\n  ".join(lines)
    return (
        f"func.func @main(%x: {t}, %y: {t}, %z: {t}, %n: {i}) -> ({types}) {{\n"
        f"  {body}\n  return {values} : {types}\n}}\n"
    )


def arguments(type_: str, points: int, rng: np.random.Generator) -> list[Array]:
    """Three arrays of at least ``points`` numbers and one of i32."""
    dtype = DTYPES[type_]
    info = ml_dtypes.finfo(dtype)
    exact = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    exact += [float(info.tiny) / 2, float(info.eps), 1 + float(info.eps), 1 - float(info.eps) / 2, np.inf]
    values = np.array([*exact, *(-x for x in exact), np.nan], dtype)
    pairs = np.array(np.meshgrid(values, values)).reshape(2, -1)
    third = rng.permutation(pairs[0])

    def draw() -> Array:
        bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), points // 4, dtype=np.uint64)
        anything = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
        size = points // 16
        tiny = 2.0 ** rng.uniform(-40, 0, size) * rng.choice([-1, 1], size)
        turns = rng.integers(-1000, 1000, size) * (np.pi / 2)
        near = [
            *(rng.uniform(-r, r, size) for r in (1, 4, 30, 100, 800)),
            *(tiny, 1 + tiny, -1 + tiny, turns, turns * 1e6),
            rng.integers(-50, 50, size) / 2,
        ]
        with np.errstate(all="ignore"):
            return np.concatenate([anything, *(part.astype(dtype) for part in near)])

    x, y, z = (np.concatenate([s, draw()]) for s in (*pairs, third))
    n = rng.integers(-9, 10, len(x), dtype=np.int32)
    n[::7] = rng.integers(-200, 200, len(n[::7]))
    return [x, y, z, n]


def compute(target: str, type_: str, values: Sequence[Array]) -> dict[str, Array]:
    """The results of devscope by name."""
    with devscope.compile(program(type_, len(values[0])), default=f"{target}:0", cache=False) as executable:
        return dict(zip((*RESULTS, *PREDICATES), executable.run("main", *values), strict=True))


@dataclass(frozen=True)
class Accuracy:
    """Largest error in ulp of results that are numbers, where it is, and where special values are wrong."""

    ulp: float
    worst: str
    wrong: list[str]


def measure(name: str, type_: str, values: Sequence[Array], found: Array) -> Accuracy:
    """Compare ``found``, the results of a function, with what they should be."""
    info = ml_dtypes.finfo(DTYPES[type_])
    with np.errstate(all="ignore"):
        wide = [value.astype(np.float64) for value in values]
        if name in PREDICATES:
            differing = np.flatnonzero(found != PREDICATES[name](wide[0], float(info.tiny)))
            return Accuracy(0.0, "", [f"{name}({wide[0][i]!r}) = {found[i]}" for i in differing])
        function = function_of(name)
        columns = [wide[0], wide[3]] if name == _FPOWI else wide[: function.arity]
        right = np.asarray(function.special(*columns)).astype(np.longdouble)
        rest = _refine(function, columns, right) if type_ == "f64" else np.zeros_like(right)
        got = found.astype(np.longdouble)
        rounded = right.astype(DTYPES[type_]).astype(np.longdouble)
        exponent = np.clip(np.frexp(right)[1] - 1, info.minexp, info.maxexp - 1)
        overflowed = np.isinf(got) & np.isfinite(right)  # as the number that would come after the largest
        nearest = np.where(overflowed, np.copysign(np.ldexp(np.longdouble(1), info.maxexp), got), got)
        error = np.abs(nearest - right - rest) / np.ldexp(np.longdouble(1), exponent - info.nmant)
        error = np.where(got == rounded, np.minimum(error, 0.5), error)
    error[got == right] = np.abs(rest / np.ldexp(np.longdouble(1), exponent - info.nmant))[got == right]
    same_sign = np.signbit(got) == np.signbit(right)
    wrong = np.where(np.isfinite(right), np.isnan(got) | ((right == 0) & ~((got == 0) & same_sign)), got != right)
    wrong &= ~(np.isnan(got) & np.isnan(right))

    def text(index: int) -> str:
        point = ", ".join(repr(float(column[index])) for column in columns)
        return f"{name}({point}) = {float(got[index])!r}, not {float(right[index])!r}"

    error[wrong | ~np.isfinite(right)] = 0
    worst = int(np.argmax(error))
    return Accuracy(float(error[worst]), text(worst), [text(i) for i in np.flatnonzero(wrong)])


def _refine(function: Function, columns: Sequence[Array], right: Array) -> Array:
    """Put what mpmath computes into ``right``, where all numbers are finite; returns what is left to add to it."""
    rest = np.zeros_like(right)
    known: dict[tuple[float, ...], Any] = {}
    for index, point in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        # mpmath has no negative zero
        if not np.isfinite(right[index]) or 0 in point or not np.isfinite(point).all():
            continue
        if point not in known:
            known[point] = function.exact(*map(_MP.mpf, point))
        exact = known[point]
        if exact == 0:  # mpmath does not know which one
            continue
        right[index] = math.copysign(float(exact), mpmath.sign(exact))
        rest[index] = float(exact - _MP.mpf(float(exact)))
    return rest


def accuracies(target: str, type_: str, points: int, seed: int = 0) -> dict[str, Accuracy]:
    values = arguments(type_, points, np.random.default_rng(seed))
    results = compute(target, type_, values)
    return {name: measure(name, type_, values, results[name]) for name in (*RESULTS, *PREDICATES)}


def limit_of(name: str) -> float:
    return LIMITS.get(name, LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--types", default=",".join(DTYPES))
    parser.add_argument("--targets", default="cpu,opencl")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    targets, types = given.targets.split(","), given.types.split(",")
    columns = [(target, type_) for target, type_ in COLUMNS if target in targets and type_ in types]
    tables = {column: accuracies(*column, given.points, given.seed) for column in columns}
    print("| largest error in ulp |", " | ".join(f"{target} {type_}" for target, type_ in columns), "|")
    print("|---|" + "---|" * len(columns))
    missed: list[str] = []
    for name in sorted([*RESULTS, *PREDICATES]):
        cells = [tables[column][name] for column in columns]
        print(f"| {name} | {' | '.join('**wrong**' if cell.wrong else f'{cell.ulp:.2f}' for cell in cells)} |")
        for column, cell in zip(columns, cells, strict=True):
            if cell.wrong or cell.ulp > limit_of(name):
                missed.append(f"{' '.join(column)}: {'; '.join(cell.wrong[:5] or [cell.worst])}")
    for text in missed:
        print(text, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
