"""Reductions that mostly keep what they have, such as argmax: exactly what their bodies say, row by row."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64}
SIZES = (0, 1, 5, 63, 64, 65, 200, 700)

Body = tuple[str, Callable[[Any, Any, Any, Any], tuple[Any, Any]]]
"""MLIR of a body that makes %w of a number %p and %v, the number so far, and %m of its index %j and %n, the index
so far; and what it computes."""


def _wider(p: Any, v: Any) -> Any:
    """maximumf, of which a NaN is the greatest, and 0.0 is more than -0.0."""
    ordered = np.where((p > v) | ((p == v) & ~np.signbit(p)), p, v)
    return np.where(np.isnan(p), p, np.where(np.isnan(v), v, ordered))


def _narrower(p: Any, v: Any) -> Any:
    return -_wider(-p, -v)


CHOOSE = "%w = arith.select %g, %p, %v : T\n%m = arith.select %g, %j, %n : i64"


def _chosen(g: Any, p: Any, j: Any, v: Any, n: Any) -> tuple[Any, Any]:
    return np.where(g, p, v), np.where(g, j, n)


def _unsigned(array: Any) -> Any:
    return array.astype(f"u{array.itemsize}")


OF_FLOATS: list[Body] = [
    (f"%g = arith.cmpf ogt, %p, %v : T\n{CHOOSE}", lambda p, j, v, n: _chosen(p > v, p, j, v, n)),
    (
        "%w = arith.maximumf %p, %v : T\n%g = arith.cmpf ogt, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (_wider(p, v), np.where(p > v, j, n)),
    ),
    (
        "%w = arith.minimumf %p, %v : T\n%g = arith.cmpf olt, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (_narrower(p, v), np.where(p < v, j, n)),
    ),
    (
        "%w = arith.minimumf %v, %p : T\n%g = arith.cmpf ole, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (_narrower(p, v), np.where(p <= v, j, n)),
    ),
    (
        f"%a = arith.cmpf ugt, %p, %v : T\n%b = arith.cmpf ord, %v, %v : T\n%g = arith.andi %a, %b : i1\n{CHOOSE}",
        lambda p, j, v, n: _chosen(~(p <= v) & (v == v), p, j, v, n),
    ),
    (
        # the index with the greater number so far; NaNs are greater than all, and of equals the last is taken
        """%a = arith.cmpf olt, %p, %v : T
        %w = arith.select %a, %v, %p : T
        %m = arith.select %a, %n, %j : i64""",
        lambda p, j, v, n: _chosen(~(p < v), p, j, v, n),
    ),
]
OF_INTEGERS: list[Body] = [
    (f"%g = arith.cmpi sgt, %p, %v : T\n{CHOOSE}", lambda p, j, v, n: _chosen(p > v, p, j, v, n)),
    (
        "%w = arith.minsi %p, %v : T\n%g = arith.cmpi sle, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (np.minimum(p, v), np.where(p <= v, j, n)),
    ),
    (
        "%w = arith.maxsi %v, %p : T\n%g = arith.cmpi sgt, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (np.maximum(p, v), np.where(p > v, j, n)),
    ),
    (
        "%w = arith.minui %p, %v : T\n%g = arith.cmpi ult, %p, %v : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: _chosen(_unsigned(p) < _unsigned(v), p, j, v, n),
    ),
    (
        "%w = arith.maxsi %v, %p : T\n%g = arith.cmpi sgt, %v, %p : T\n%m = arith.select %g, %j, %n : i64",
        lambda p, j, v, n: (np.maximum(p, v), np.where(v > p, j, n)),
    ),
]


def text(element: str, bodies: list[Body]) -> str:
    """A function of rows and of the state to begin with, with the last states by all bodies."""
    matrix, vector = f"tensor<?x?x{element}>", f"tensor<?x{element}>"
    lines: list[str] = []
    for number, (body, _) in enumerate(bodies):
        lines.append(
            f"""%r{number}:2 = linalg.generic {{
              indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
              iterator_types = ["parallel", "reduction"]
            }} ins(%x : {matrix}) outs(%values, %places : {vector}, tensor<?xi64>) {{
              ^bb0(%p: {element}, %v: {element}, %n: i64):
                %i = linalg.index 1 : index
                %j = arith.index_cast %i : index to i64
                {body.replace(": T", f": {element}")}
                linalg.yield %w, %m : {element}, i64
            }} -> ({vector}, tensor<?xi64>)"""
        )
    names = ", ".join(f"%r{number}#0, %r{number}#1" for number in range(len(bodies)))
    types = ", ".join([f"{vector}, tensor<?xi64>"] * len(bodies))
    body = "\n".join([*lines, f"return {names} : {types}"])
    return f"func.func @main(%x: {matrix}, %values: {vector}, %places: tensor<?xi64>) -> ({types}) {{\n{body}\n}}"


def rows(type_: Any, size: int) -> tuple[Any, Any]:
    """Rows of many equal numbers, in all orders, with zeros, infinities and NaNs; and numbers to begin with."""
    generator = np.random.default_rng(size)
    mixed = generator.integers(-5, 6, (12, size)).astype(type_)
    mixed[3:6] = generator.integers(-120, 120, (3, size))
    mixed[6], mixed[7] = np.sort(mixed[4]), np.sort(mixed[5])[::-1]
    if issubclass(type_, np.floating):
        mixed[:3][mixed[:3] == 0] *= type_(-1)
        mixed[8] = np.where(np.arange(size) % 2, type_(-0.0), type_(0.0))
        for row, value in ((9, np.nan), (10, np.inf), (11, -np.inf)):
            mixed[row, generator.integers(0, 100, size) < 3] = value
        mixed[2] = -np.inf
        mixed[4, generator.integers(0, 100, size) < 3] = np.inf
        mixed[4, generator.integers(0, 100, size) < 3] = -np.inf
        return mixed, np.array([-np.inf, np.inf, np.nan, 0, -0.0, 3, -np.inf, -np.inf, -1, -9, 0, 0]).astype(type_)
    return mixed, np.linspace(-100, 100, 12).astype(type_)


def bits(array: Any) -> Any:
    """To compare signs of zeros; all NaNs are alike."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), array.dtype.type(np.nan), array).view(f"i{array.itemsize}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("element", TYPES)
def test_choices(element: str, device: str) -> None:
    bodies = OF_FLOATS if element[0] == "f" else OF_INTEGERS
    run = devscope.compile(text(element, bodies), default=device)
    for size in SIZES:
        x, begin = rows(TYPES[element], size)
        got = run(x, begin, np.full(12, -1))
        for number, (body, compute) in enumerate(bodies):
            value, place = begin, np.full(12, -1)
            for j in range(size):
                value, place = compute(x[:, j], j, value, place)
            np.testing.assert_array_equal(got[2 * number + 1], place, err_msg=f"{element} {size}\n{body}")
            np.testing.assert_array_equal(bits(got[2 * number]), bits(value), err_msg=f"{element} {size}\n{body}")


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_numbers_beside_zero(device: str) -> None:
    """Zeros of both signs between numbers as small as there are, where only their order says what is greatest."""
    tiny = struct.unpack("<f", struct.pack("<I", 1))[0]
    numbers = np.array([-tiny, -0.0, 0.0, tiny], np.float32)
    x = numbers[np.random.default_rng(0).integers(0, 3, (64, 130))]
    x[::3] = np.minimum(x[::3], -0.0)
    begin = np.full(64, -1, np.float32)
    got = devscope.compile(text("f32", OF_FLOATS[1:2]), default=device)(x, begin, np.full(64, -1))
    value, place = begin, np.full(64, -1)
    for j in range(x.shape[1]):
        value, place = OF_FLOATS[1][1](x[:, j], j, value, place)
    np.testing.assert_array_equal(bits(got[0]), bits(value))
    np.testing.assert_array_equal(got[1], place)


def test_choice_that_no_element_decides() -> None:
    """The number that is compared is from around the reduction: the first element is kept, or none is."""
    body = f"%g = arith.cmpf ogt, %p, %v : T\n{CHOOSE}".replace("%p", "%three")
    program = text("f64", [(body, lambda p, j, v, n: _chosen(v < 3, 3.0, j, v, n))])
    program = program.replace("{\n", "{\n%three = arith.constant 3.0 : f64\n", 1)
    begin = np.array([-np.inf, 3, 5, np.nan])
    value, place = devscope.compile(program)(np.zeros((4, 600)), begin, np.full(4, -1))
    np.testing.assert_array_equal(value, [3, 3, 5, np.nan])
    np.testing.assert_array_equal(place, [0, -1, -1, -1])
