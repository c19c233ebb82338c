"""Reductions whose results are too few for tasks: in parts, side by side, with any number of threads the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope

# Of each: the extents, those that are known at run time only as the sizes that are given; the axes that go; the
# element type; the combiner; the number that the result begins with.
CASES: list[tuple[list[int | tuple[int, ...]], tuple[int, ...], str, str, float]] = [
    ([4096, 300], (0,), "f32", "addf", 3.0),
    ([5000, 300], (0,), "f32", "addf", -1.5),
    ([40990, 7], (0,), "f32", "maximumf", -1.0),
    ([40990, 7], (0,), "i32", "minsi", -8),
    ([20000, 6], (0,), "f64", "addf", 0.5),
    ([3, 70001], (1,), "f32", "addf", 1.0),
    ([64, 1000, 5], (0, 1), "f32", "addf", 1.0),
    ([2, 50001, 5], (1,), "f32", "minimumf", 1.0),
    ([(70001, 128, 15, 1, 0), 5], (0,), "f32", "addf", 1.0),
    ([2, (30007, 17, 0), 5], (1,), "f32", "addf", 1.0),
    ([(2, 0), (30007, 17)], (1,), "f32", "addf", 1.0),
]
NUMPY: dict[str, Any] = {
    "addf": np.add,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "minsi": np.minimum,
}
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


def function(number: int) -> str:
    shape, axes, element, combiner, _ = CASES[number]
    extents = ["?" if isinstance(extent, tuple) else str(extent) for extent in shape]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    given = f"tensor<{'x'.join(extents)}x{element}>"
    result = f"tensor<{'x'.join(extents[axis] for axis in kept)}x{element}>"
    loops = ", ".join(f"d{axis}" for axis in range(len(shape)))
    kinds = ", ".join('"reduction"' if axis in axes else '"parallel"' for axis in range(len(shape)))
    dynamic = [axis for axis in kept if extents[axis] == "?"]
    sizes = "".join(
        f"  %c{axis} = arith.constant {axis} : index\n  %n{axis} = tensor.dim %x, %c{axis} : {given}\n"
        for axis in dynamic
    )
    return f"""
func.func @f{number}(%x: {given}, %start: {element}) -> {result} {{
{sizes}  %empty = tensor.empty({", ".join(f"%n{axis}" for axis in dynamic)}) : {result}
  %begin = linalg.fill ins(%start : {element}) outs(%empty : {result}) -> {result}
  %r = linalg.generic {{
      indexing_maps = [affine_map<({loops}) -> ({loops})>,
                       affine_map<({loops}) -> ({", ".join(f"d{axis}" for axis in kept)})>],
      iterator_types = [{kinds}]}} ins(%x : {given}) outs(%begin : {result}) {{
  ^bb0(%a: {element}, %b: {element}):
    %s = arith.{combiner} %b, %a : {element}
    linalg.yield %s : {element}
  }} -> {result}
  return %r : {result}
}}
"""


@pytest.fixture(scope="module")
def programs() -> list[devscope.Executable]:
    text = "".join(map(function, range(len(CASES))))
    return [devscope.compile(text, threads=threads) for threads in (1, 3)]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_as_numpy(programs: list[devscope.Executable], number: int) -> None:
    shape, axes, element, combiner, start = CASES[number]
    dtype = DTYPES[element]
    rng = np.random.default_rng(number)
    for choice in range(max(len(extent) if isinstance(extent, tuple) else 1 for extent in shape)):
        sizes = [extent[choice % len(extent)] if isinstance(extent, tuple) else extent for extent in shape]
        x = rng.integers(-9, 9, sizes).astype(dtype)  # sums of these are exact
        if combiner in ("maximumf", "minimumf"):
            x[-1, -1] = np.nan
        first, second = (program.run(f"f{number}", x, dtype(start)) for program in programs)
        expected = NUMPY[combiner].reduce(x, axis=axes, initial=dtype(start))
        assert np.array_equal(first, expected, equal_nan=element != "i32"), sizes
        assert first.tobytes() == second.tobytes()


def test_sums_of_any_numbers(programs: list[devscope.Executable]) -> None:
    rng = np.random.default_rng(1)
    for number, shape in ((0, (4096, 300)), (8, (70001, 5))):
        x = rng.standard_normal(shape).astype(np.float32)
        first, second = (program.run(f"f{number}", x, np.float32(0)) for program in programs)
        assert first.tobytes() == second.tobytes()
        assert np.allclose(first, x.astype(np.float64).sum(axis=0), rtol=1e-4, atol=1e-2)


CONTRACTIONS = [
    ("1x2048x2048", "f32"),
    ("3x2051x700", "f64"),
    ("16x10000x16", "f32"),
    ("8x2100x130", "i32"),
    ("20x5000x30", "f16"),
]


def product(number: int) -> str:
    sizes, element = CONTRACTIONS[number]
    m, k, n = sizes.split("x")
    a, b, c = (f"tensor<{one}x{other}x{element}>" for one, other in ((m, k), (k, n), (m, n)))
    return f"""
func.func @m{number}(%a: {a}, %b: {b}, %c: {c}) -> ({c}, {c}) {{
  %zero = arith.constant {"0" if element == "i32" else "0.0"} : {element}
  %empty = tensor.empty() : {c}
  %begin = linalg.fill ins(%zero : {element}) outs(%empty : {c}) -> {c}
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%begin : {c}) -> {c}
  %s = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %r, %s : {c}, {c}
}}
"""


def test_contractions_with_long_sums() -> None:
    """Sums of these numbers are exact, in f16, too."""
    text = "".join(map(product, range(len(CONTRACTIONS))))
    programs = [devscope.compile(text, threads=threads) for threads in (1, 3)]
    on_device = devscope.compile(product(0) + product(3), default="opencl:0")
    rng = np.random.default_rng(0)
    for number, (sizes, element) in enumerate(CONTRACTIONS):
        m, k, n = map(int, sizes.split("x"))
        dtype = {**DTYPES, "f16": np.float16}[element]
        a, b, c = (rng.integers(-1, 2, shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        expected = a.astype(np.float64) @ b.astype(np.float64)
        for program in [*programs, *([on_device] if number in (0, 3) else [])]:
            first, second = program.run(f"m{number}", a, b, c)
            assert np.array_equal(first, expected), sizes
            assert np.array_equal(second, expected + c), sizes
