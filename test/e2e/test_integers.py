"""Operations on integers, and conversions between numbers, at the ends of the ranges of all types.

The reference is Python's arithmetic on integers of any size, and numpy's rounding of it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES: dict[str, Any] = {
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64},
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
#: Those of OpenCL are fewer: kernels take long to build.
TRIED = {"cpu": ("i8", "i16", "i32", "i64", "index"), "opencl": ("i8", "i64")}
SOURCES = {"cpu": ("i1", "i8", "i16", "i32", "i64"), "opencl": ("i1", "i8", "i64")}
INTEGERS = ("i8", "i16", "i32", "i64", "index")


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def edges(bits: int) -> list[int]:
    least = -(1 << (bits - 1))
    found = [0, 1, 2, 3, 5, 7, -1, -2, -3, -7, least, least + 1, least // 2, -least - 1, -least - 2, -(least // 3)]
    return found if bits > 1 else [0, -1]


#: What operations make of two signed numbers a and b, and the same numbers without sign, u and v; modulo 2^bits.
BINARY: dict[str, Callable[[int, int, int, int, int], int]] = {
    "addi": lambda a, b, u, v, n: a + b,
    "subi": lambda a, b, u, v, n: a - b,
    "muli": lambda a, b, u, v, n: a * b,
    "andi": lambda a, b, u, v, n: a & b,
    "ori": lambda a, b, u, v, n: a | b,
    "xori": lambda a, b, u, v, n: a ^ b,
    "maxsi": lambda a, b, u, v, n: max(a, b),
    "maxui": lambda a, b, u, v, n: max(u, v),
    "minsi": lambda a, b, u, v, n: min(a, b),
    "minui": lambda a, b, u, v, n: min(u, v),
}
#: The second operand is not 0, nor -1 where the first is the least number.
DIVISIONS: dict[str, Callable[[int, int, int, int, int], int]] = {
    "divsi": lambda a, b, u, v, n: truncated(a, b),
    "divui": lambda a, b, u, v, n: u // v,
    "remsi": lambda a, b, u, v, n: a - truncated(a, b) * b,
    "remui": lambda a, b, u, v, n: u % v,
    "ceildivsi": lambda a, b, u, v, n: -(-a // b),
    "ceildivui": lambda a, b, u, v, n: -(-u // v),
    "floordivsi": lambda a, b, u, v, n: a // b,
}
SHIFTS: dict[str, Callable[[int, int, int, int, int], int]] = {
    "shli": lambda a, b, u, v, n: a << b,
    "shrsi": lambda a, b, u, v, n: a >> b,
    "shrui": lambda a, b, u, v, n: u >> b,
}
EXTENDED: dict[str, Callable[[int, int, int, int, int], tuple[int, int]]] = {
    "mulsi_extended": lambda a, b, u, v, n: (a * b, a * b >> n),
    "mului_extended": lambda a, b, u, v, n: (u * v, u * v >> n),
}
PREDICATES: dict[str, Callable[[int, int, int, int], bool]] = {
    "eq": lambda a, b, u, v: a == b,
    "ne": lambda a, b, u, v: a != b,
    "slt": lambda a, b, u, v: a < b,
    "sle": lambda a, b, u, v: a <= b,
    "sgt": lambda a, b, u, v: a > b,
    "sge": lambda a, b, u, v: a >= b,
    "ult": lambda a, b, u, v: u < v,
    "ule": lambda a, b, u, v: u <= v,
    "ugt": lambda a, b, u, v: u > v,
    "uge": lambda a, b, u, v: u >= v,
}
UNARY: dict[str, Callable[[int, int, int], int]] = {
    "absi": lambda a, u, n: abs(a),
    "ctlz": lambda a, u, n: n - u.bit_length(),
    "ctpop": lambda a, u, n: u.bit_count(),
    "cttz": lambda a, u, n: (u & -u).bit_length() - 1 if u else n,
}


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def arguments(type_: str) -> tuple[list[int], list[int], list[int], list[int]]:
    """a and b; a divisor of a; the number of bits of a shift, which serves as an exponent, too."""
    bits = BITS[type_]
    pairs = list(itertools.product(edges(bits), edges(bits)))
    first = [a for a, _ in pairs]
    divisors = [3 if b == 0 or (b == -1 and a == min(first)) else b for a, b in pairs]
    shifts = [number % bits for number in range(len(pairs))]
    return first, [b for _, b in pairs], divisors, shifts


def entry(type_: str) -> tuple[str, list[tuple[str, Callable[[int, int, int, int], int], str]]]:
    """An entry's text; names, references over the arguments and types of its results."""
    bits = BITS[type_]
    integer = type_ != "index"  # what math and some of arith are about
    body: list[str] = []
    results: list[tuple[str, Callable[[int, int, int, int], int], str]] = []

    def add(name: str, text: str, reference: Callable[[int, int, int, int], int], result: str = type_) -> None:
        body.append(f"%{name} = {text}")
        results.append((name, reference, result))

    def modulo(value: int) -> int:
        return value % (1 << bits)

    for position, table in ((1, BINARY), (2, DIVISIONS), (3, SHIFTS)):
        for name, function in table.items():
            operand = ("%b", "%d", "%s")[position - 1]
            add(
                name,
                f"arith.{name} %a, {operand} : {type_}",
                lambda *x, f=function, p=position: f(x[0], x[p], modulo(x[0]), modulo(x[p]), bits),
            )
    for name, compare in PREDICATES.items():
        add(
            name,
            f"arith.cmpi {name}, %a, %b : {type_}",
            lambda *x, f=compare: f(x[0], x[1], modulo(x[0]), modulo(x[1])),
            "i1",
        )
    if integer:
        for name, function in EXTENDED.items():
            body.append(f"%{name}_low, %{name}_high = arith.{name} %a, %b : {type_}")
            for part in (0, 1):
                results.append(
                    (
                        f"{name}_{('low', 'high')[part]}",
                        lambda *x, f=function, p=part: f(x[0], x[1], modulo(x[0]), modulo(x[1]), bits)[p],
                        type_,
                    )
                )
        body.append(f"%sum, %carry = arith.addui_extended %a, %b : {type_}, i1")
        results.append(("carry", lambda *x: modulo(x[0]) + modulo(x[1]) >> bits, "i1"))
        for name, function in UNARY.items():
            add(name, f"math.{name} %a : {type_}", lambda *x, f=function: f(x[0], modulo(x[0]), bits))
        add("ipowi", f"math.ipowi %a, %s : {type_}", lambda *x: power(x[0], x[3]))
        add("ipowi_negative", f"math.ipowi %a, %b : {type_}", lambda *x: power(x[0], x[1]))
    return generic(type_, [type_] * 4, "abds", body, results, len(arguments(type_)[0])), results


def generic(
    symbol: str,
    types: Sequence[str],
    names: str,
    body: Sequence[str],
    results: Sequence[tuple[str, Any, str]],
    count: int,
) -> str:
    tensors = [f"tensor<{count}x{type_}>" for type_ in types]
    outs = [f"tensor<{count}x{type_}>" for _, _, type_ in results]
    empties = {type_: f"%e{number}" for number, type_ in enumerate(dict.fromkeys(outs))}
    lines = "\n".join(f"{name} = tensor.empty() : {type_}" for type_, name in empties.items())
    parameters = ", ".join(f"%{name}_: {type_}" for name, type_ in zip(names, tensors, strict=True))
    scalars = [f"%{name}: {type_}" for name, type_ in zip(names, types, strict=True)]
    scalars += [f"%o{number}: {type_}" for number, (_, _, type_) in enumerate(results)]
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (len(tensors) + len(outs)))
    statements = "\n        ".join(body)
    return f"""
    func.func @{symbol}({parameters}) -> ({", ".join(outs)}) {{
      {lines}
      %0:{len(outs)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
          ins({", ".join(f"%{name}_" for name in names)} : {", ".join(tensors)})
          outs({", ".join(empties[type_] for type_ in outs)} : {", ".join(outs)}) {{
      ^bb0({", ".join(scalars)}):
        {statements}
        linalg.yield {", ".join(f"%{name}" for name, _, _ in results)} : {", ".join(t for _, _, t in results)}
      }} -> ({", ".join(outs)})
      return {", ".join(f"%0#{number}" for number in range(len(outs)))} : {", ".join(outs)}
    }}
    """


FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "oeq": lambda x, y: x == y,
    "ogt": lambda x, y: x > y,
    "oge": lambda x, y: x >= y,
    "olt": lambda x, y: x < y,
    "ole": lambda x, y: x <= y,
    "one": lambda x, y: (x < y) | (x > y),
    "ord": lambda x, y: (x == x) & (y == y),
    "uno": lambda x, y: (x != x) | (y != y),
}
OPPOSITES = {"une": "oeq", "ule": "ogt", "ult": "oge", "uge": "olt", "ugt": "ole", "ueq": "one"}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
}
FLOATS = {name: ("f16", "bf16", "f32", "f64") for name in ("cpu", "opencl")}


def rounded(value: Any, type_: str) -> float:
    """The nearest number of a type; ties to even."""
    if not np.isfinite(value):
        return float(value)
    exponent_bits, mantissa_bits = FORMATS[type_]
    exact = Fraction(value)
    exponent = max(exponent_of(exact), 2 - (1 << (exponent_bits - 1)))
    unit = Fraction(2) ** (exponent - mantissa_bits)
    result = round(exact / unit) * unit
    largest = (2 - Fraction(2) ** -mantissa_bits) * Fraction(2) ** ((1 << (exponent_bits - 1)) - 1)
    return float(np.copysign(np.inf if abs(result) > largest else abs(float(result)), value))


def exponent_of(value: Fraction) -> int:
    if value == 0:
        return -10_000
    found = abs(value.numerator).bit_length() - value.denominator.bit_length()
    return found - (abs(value) < Fraction(2) ** found)


def from_integers(source: str, floats: Sequence[str]) -> tuple[str, list[tuple[str, Any, str]], list[Array]]:
    bits = BITS[source]
    values = [*edges(bits), *(signed(0x5DEECE66D * k * k, bits) for k in range(40))]
    values += [signed((1 << k) + delta, bits) for k in range(bits) for delta in (-1, 0, 1)] if bits > 1 else []
    body: list[str] = []
    results: list[tuple[str, Any, str]] = []
    unsigned = [value % (1 << bits) for value in values]
    for target in floats:
        body += [f"%s{target} = arith.sitofp %a : {source} to {target}"]
        body += [f"%u{target} = arith.uitofp %a : {source} to {target}"]
        results += [(f"s{target}", [rounded(value, target) for value in values], target)]
        results += [(f"u{target}", [rounded(value, target) for value in unsigned], target)]
    for target in BITS:
        cast = target == "index"
        if target == source or (not cast and BITS[target] == bits):
            continue
        if cast or BITS[target] > bits:
            names = ("index_cast", "index_castui") if cast else ("extsi", "extui")
            for name, numbers in zip(names, (values, unsigned), strict=True):
                body += [f"%{name}_{target} = arith.{name} %a : {source} to {target}"]
                results += [(f"{name}_{target}", numbers, target)]
        else:
            body += [f"%trunci_{target} = arith.trunci %a : {source} to {target}"]
            results += [(f"trunci_{target}", values, target)]
    symbol = f"from_{source}"
    text = generic(symbol, [source], "a", body, results, len(values))
    return text, results, [np.array(values).astype(DTYPES[source])]


def from_floats(source: str, floats: Sequence[str]) -> tuple[str, list[tuple[str, Any, str]], list[Array]]:
    dtype = DTYPES[source]
    info = ml_dtypes.finfo(dtype)
    numbers = [0.0, 1.0, 1.5, 2.5, 5.5, float(info.max), float(info.tiny), float(info.smallest_subnormal), np.inf]
    numbers += [float(info.tiny) * 0.75, 1 + float(info.eps), 65519.0, 65520.0, 2.0**-25, 3 * 2.0**-26, 1e-40]
    numbers += [1.00390625, 1.01171875, 1 + 2.0**-9 + 2.0**-40, 1 + 2.0**-11 + 2.0**-45, 2.0**-134, 1e300]
    with np.errstate(all="ignore"):
        singles = np.array([*numbers, *(-x for x in numbers), np.nan]).astype(dtype)
        x, y = (grid.ravel() for grid in np.meshgrid(singles, singles))
    body: list[str] = ["%neg = arith.negf %a : " + source]
    results: list[tuple[str, Any, str]] = [("neg", -x, source)]
    with np.errstate(all="ignore"):
        for name, function in ARITHMETIC.items():
            body.append(f"%{name} = arith.{name} %a, %b : {source}")
            results.append((name, function(x, y), source))
    for name in (*COMPARISONS, *OPPOSITES):
        body.append(f"%{name} = arith.cmpf {name}, %a, %b : {source}")
        with np.errstate(invalid="ignore"):
            right = ~COMPARISONS[OPPOSITES[name]](x, y) if name in OPPOSITES else COMPARISONS[name](x, y)
        results.append((name, right, "i1"))
    for target in floats:
        width = np.dtype(DTYPES[target]).itemsize - np.dtype(dtype).itemsize
        if width:
            operation = "extf" if width > 0 else "truncf"
            body.append(f"%to_{target} = arith.{operation} %a : {source} to {target}")
            results.append((f"to_{target}", [rounded(float(value), target) for value in x], target))
    columns: list[Array] = []
    types = [source, source]
    for number, (kind, target) in enumerate(itertools.product(("si", "ui"), INTEGERS[:-1])):
        bits = BITS[target]
        least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "si" else (0, (1 << bits) - 1)
        limit = min(float(info.max), 2.0 ** (bits - (kind == "si")))
        inside = [0.0, -0.0, 0.5, 0.99, -0.5, 1.5, 126.75, 100.0, limit * 0.75, limit * (1 - float(info.eps))]
        inside += [-value for value in inside] if kind == "si" else []
        column = np.resize(np.array(inside).astype(dtype), len(x))
        column = np.where([least <= int(value) <= most for value in column], column, np.zeros(1, dtype))
        columns.append(column)
        types.append(source)
        body.append(f"%fpto{kind}_{target} = arith.fpto{kind} %{chr(ord('c') + number)} : {source} to {target}")
        results.append((f"fpto{kind}_{target}", [int(value) for value in column], target))
    text = generic(f"from_{source}", types, "abcdefghij", body, results, len(x))
    return text, results, [x, y, *columns]


@functools.cache
def converting(target: str) -> tuple[Executable, dict[str, tuple[list[tuple[str, Any, str]], list[Array]]]]:
    made = {f"from_{source}": from_integers(source, FLOATS[target]) for source in SOURCES[target]}
    made |= {f"from_{source}": from_floats(source, FLOATS[target]) for source in FLOATS[target]}
    executable = devscope.compile("".join(text for text, _, _ in made.values()), default=f"{target}:0")
    return executable, {symbol: (results, values) for symbol, (_, results, values) in made.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("target", "source"), [(target, source) for target in FLOATS for source in (*SOURCES[target], *FLOATS[target])]
)
def test_conversions(target: str, source: str) -> None:
    executable, cases = converting(target)
    results, values = cases[f"from_{source}"]
    found = executable.run(f"from_{source}", *values)
    wrong: dict[str, Any] = {}
    for (name, right, result), got in zip(results, found, strict=True):
        if result in BITS:
            wanted = [signed(int(value), BITS[result]) for value in right]
            numbers = [signed(int(value), BITS[result]) for value in got]
            bad = [number for number, pair in enumerate(zip(numbers, wanted, strict=True)) if pair[0] != pair[1]]
        else:
            wanted = np.asarray(right, np.float64)
            numbers = got.astype(np.float64)
            same = (numbers == wanted) & (np.signbit(numbers) == np.signbit(wanted))
            bad = list(np.flatnonzero(~(same | (np.isnan(numbers) & np.isnan(wanted)))))
        if bad:
            wrong[name] = [([column[n] for column in values[:2]], numbers[n], wanted[n]) for n in bad[:3]]
    assert not wrong


@functools.cache
def compiled(target: str) -> Executable:
    return devscope.compile("".join(entry(type_)[0] for type_ in TRIED[target]), default=f"{target}:0")


@pytest.mark.parametrize(("target", "type_"), [(target, type_) for target in TRIED for type_ in TRIED[target]])
def test_arithmetic(target: str, type_: str) -> None:
    numbers = arguments(type_)
    found = compiled(target).run(type_, *(np.array(column, DTYPES[type_]) for column in numbers))
    for (name, reference, result), values in zip(entry(type_)[1], found, strict=True):
        wanted = [signed(int(reference(*point)), BITS[result]) for point in zip(*numbers, strict=True)]
        got = [signed(int(value), BITS[result]) for value in values]
        assert got == wanted, name
