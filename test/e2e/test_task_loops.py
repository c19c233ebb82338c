"""Loops of tasks on OpenCL devices that are CPUs, written by vectors: all element types, sizes and edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError

pytestmark = pytest.mark.sampled(6)

TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
SIZES = [(0, 0), (0, 7), (5, 0), (1, 1), (3, 1), (1, 3), (2, 7), (3, 16), (17, 33), (300, 1000)]


def program(of: str) -> str:
    """Elementwise operations with a row and a column, and sums and maxima along both axes."""
    kind = "i" if of.startswith("i") else "f"
    maximum, least = ("maxsi", f"{-(2 ** (int(of[1:]) - 1))}") if kind == "i" else ("maximumf", "0.0")
    reductions = [
        (f"{name}{axis}", operation, start, kept, axis)
        for name, operation, start in (
            ("sum", f"add{kind}", "0" if kind == "i" else "0.0"),
            ("most", maximum, least),
        )
        for axis, kept in ((0, "j"), (1, "i"))
    ]
    lines = [
        f"""
        #whole = affine_map<(i, j) -> (i, j)>
        #i = affine_map<(i, j) -> (i)>
        #j = affine_map<(i, j) -> (j)>
        #each = {{indexing_maps = [#whole, #j, #i, #whole], iterator_types = ["parallel", "parallel"]}}
        func.func @each(%x: tensor<?x?x{of}>, %row: tensor<?x{of}>, %column: tensor<?x{of}>) -> tensor<?x?x{of}> {{
          %y = linalg.generic #each
              ins(%x, %row, %column : tensor<?x?x{of}>, tensor<?x{of}>, tensor<?x{of}>)
              outs(%x : tensor<?x?x{of}>) {{
            ^bb0(%a: {of}, %b: {of}, %c: {of}, %old: {of}):
              %0 = arith.mul{kind} %a, %b : {of}
              %1 = arith.{maximum} %0, %c : {of}
              linalg.yield %1 : {of}
          }} -> tensor<?x?x{of}>
          return %y : tensor<?x?x{of}>
        }}"""
    ]
    for name, operation, start, kept, axis in reductions:
        kinds = '"reduction", "parallel"' if axis == 0 else '"parallel", "reduction"'
        lines.append(f"""
        func.func @{name}(%x: tensor<?x?x{of}>) -> tensor<?x{of}> {{
          %axis = arith.constant {1 - axis} : index
          %start = arith.constant {start} : {of}
          %n = tensor.dim %x, %axis : tensor<?x?x{of}>
          %e = tensor.empty(%n) : tensor<?x{of}>
          %f = linalg.fill ins(%start : {of}) outs(%e : tensor<?x{of}>) -> tensor<?x{of}>
          %y = linalg.generic {{indexing_maps = [#whole, #{kept}], iterator_types = [{kinds}]}}
              ins(%x : tensor<?x?x{of}>) outs(%f : tensor<?x{of}>) {{
            ^bb0(%a: {of}, %b: {of}):
              %0 = arith.{operation} %b, %a : {of}
              linalg.yield %0 : {of}
          }} -> tensor<?x{of}>
          return %y : tensor<?x{of}>
        }}""")
    return "\n".join(lines)


def numbers(rng: np.random.Generator, dtype: Any, *shape: int) -> Any:
    """Of floats, few and small ones: their sums are exact in any order."""
    if np.dtype(dtype).kind == "i":
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("of", TYPES)
def test_element_types_and_sizes(of: str) -> None:
    made = devscope.compile(program(of), default="opencl:0")
    rng, dtype = np.random.default_rng(0), TYPES[of]
    for rows, columns in SIZES:
        x = numbers(rng, dtype, rows, columns)
        row, column = numbers(rng, dtype, columns), numbers(rng, dtype, rows)
        expected = np.maximum(x * row, column[:, None])
        np.testing.assert_array_equal(made.run("each", x, row, column), expected, f"{rows} x {columns}")
        lowest = np.iinfo(dtype).min if of.startswith("i") else dtype(0)
        for axis in (0, 1):
            if of not in ("bf16", "f16") or x.size < 1000:  # these have no digits for larger sums
                total = x.sum(axis=axis, dtype=dtype)
                np.testing.assert_array_equal(made.run(f"sum{axis}", x), total, f"{rows} x {columns}, {axis}")
            most = x.max(axis=axis, initial=lowest)
            np.testing.assert_array_equal(made.run(f"most{axis}", x), most, f"{rows} x {columns}, {axis}")


@pytest.mark.parametrize("of", ["f16", "f32", "i64"])
def test_all_numbers_of_elements_left_over(of: str) -> None:
    """Known as the program is compiled: none is computed from, or written, beyond the end."""
    sizes = range(1, 35)
    functions = (
        f"""
        func.func @n{size}(%x: tensor<3x{size}x{of}>, %row: tensor<{size}x{of}>) -> tensor<3x{size}x{of}> {{
          %y = linalg.generic {{indexing_maps = [#whole, #j, #whole], iterator_types = ["parallel", "parallel"]}}
              ins(%x, %row : tensor<3x{size}x{of}>, tensor<{size}x{of}>) outs(%x : tensor<3x{size}x{of}>) {{
            ^bb0(%a: {of}, %b: {of}, %old: {of}):
              %0 = arith.mul{of[0]} %a, %b : {of}
              linalg.yield %0 : {of}
          }} -> tensor<3x{size}x{of}>
          return %y : tensor<3x{size}x{of}>
        }}"""
        for size in sizes
    )
    maps = "#whole = affine_map<(i, j) -> (i, j)>\n#j = affine_map<(i, j) -> (j)>"
    made = devscope.compile("\n".join([maps, *functions]), default="opencl:0")
    rng = np.random.default_rng(1)
    for size in sizes:
        x, row = numbers(rng, TYPES[of], 3, size), numbers(rng, TYPES[of], size)
        np.testing.assert_array_equal(made.run(f"n{size}", x, row), x * row, f"{size}")


SPECIAL = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %p = arith.constant 0.0 : f32
  %m = arith.constant -0.0 : f32
  %f = linalg.fill ins(%p : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %g = linalg.fill ins(%m : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0 = arith.maximumf %x, %f : tensor<?xf32>
  %1 = arith.maximumf %g, %x : tensor<?xf32>
  %2 = arith.minimumf %x, %f : tensor<?xf32>
  %3 = arith.minimumf %x, %y : tensor<?xf32>
  %4 = math.exp %x : tensor<?xf32>
  return %0, %1, %2, %3, %4 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
"""


def test_special_numbers() -> None:
    """Of each place of a vector, and of what is left over."""
    given = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0], np.float32)
    x, y = (each.ravel() for each in np.meshgrid(given, given))
    made = devscope.compile(SPECIAL, default="opencl:0")
    host = devscope.compile(SPECIAL, default="cpu:0")
    for first in range(3):
        found, expected = (each(x[first:], y[first:]) for each in (made, host))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            real = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[real], np.signbit(other)[real])


LARGE = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = math.absf %x : tensor<?x?xf32>
  %1 = arith.addf %0, %x : tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("columns", [1, 5, 4099])
def test_results_that_go_past_the_caches(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((5_000_003 // columns, columns)).astype(np.float32)
    np.testing.assert_array_equal(devscope.compile(LARGE, default="opencl:0")(x), np.abs(x) + x)


SOFTMAX = """
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#of_row = {{indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}}
!t = tensor<{shape}xf32>
!r = tensor<{rows}xf32>
func.func @main(%x: !t) -> !t {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {sizes}
  %e = tensor.empty({names}) : !t
  %r = tensor.empty({name_of_rows}) : !r
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %lows = linalg.fill ins(%low : f32) outs(%r : !r) -> !r
  %zeros = linalg.fill ins(%zero : f32) outs(%r : !r) -> !r
  %most = linalg.reduce {{arith.maximumf}} ins(%x : !t) outs(%lows : !r) dimensions = [1]
  %powers = linalg.generic #of_row ins(%x, %most : !t, !r) outs(%e : !t) {{
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }} -> !t
  %sums = linalg.reduce {{arith.addf}} ins(%powers : !t) outs(%zeros : !r) dimensions = [1]
  %y = linalg.generic #of_row ins(%powers, %sums : !t, !r) outs(%e : !t) {{
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }} -> !t
  return %y : !t
}}
"""


@pytest.mark.parametrize("shape", ["?x?", "?x100", "40x?", "?x1", "40x31"])
def test_passes_over_rows(shape: str) -> None:
    """NaN stays in its row; rows of unknown length are in memory that tasks share."""
    dynamic = [axis for axis, extent in enumerate(shape.split("x")) if extent == "?"]
    sizes = "\n".join(f"%n{axis} = tensor.dim %x, %c{axis} : tensor<{shape}xf32>" for axis in dynamic)
    names = ", ".join(f"%n{axis}" for axis in dynamic)
    rows = {"rows": shape.partition("x")[0], "name_of_rows": "%n0" if 0 in dynamic else ""}
    made = devscope.compile(SOFTMAX.format(shape=shape, sizes=sizes, names=names, **rows), default="opencl:0")
    given = [None if extent == "?" else int(extent) for extent in shape.split("x")]
    for size, columns in [(40, 31), (0, 4), (9, 0), (1, 17), (8, 16), (700, 1003), (40, 20000)]:
        extents = [
            known if known is not None else size for known, size in zip(given, (size, columns), strict=True)
        ]
        x = np.random.default_rng(size).standard_normal(extents).astype(np.float32) * 4
        if x.size and x.shape[0] > 3:
            x[2, -1] = np.nan
        powers = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
        expected = powers / powers.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(made(x), expected, rtol=1e-4, atol=1e-7, err_msg=f"{size} x {columns}")


TOTALS = """
func.func @main(%x: tensor<?x?xf32>, %y: tensor<300x1001xi32>, %z: tensor<2x3xf64>)
    -> (tensor<f32>, tensor<i32>, tensor<f64>, tensor<f32>) {
  %a = tensor.empty() : tensor<f32>
  %b = tensor.empty() : tensor<i32>
  %c = tensor.empty() : tensor<f64>
  %f = arith.constant 0.0 : f32
  %i = arith.constant 0 : i32
  %d = arith.constant 0.0 : f64
  %low = arith.constant 0xFF800000 : f32
  %a0 = linalg.fill ins(%f : f32) outs(%a : tensor<f32>) -> tensor<f32>
  %b0 = linalg.fill ins(%i : i32) outs(%b : tensor<i32>) -> tensor<i32>
  %c0 = linalg.fill ins(%d : f64) outs(%c : tensor<f64>) -> tensor<f64>
  %l0 = linalg.fill ins(%low : f32) outs(%a : tensor<f32>) -> tensor<f32>
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%a0 : tensor<f32>) dimensions = [0, 1]
  %1 = linalg.reduce {arith.xori} ins(%y : tensor<300x1001xi32>) outs(%b0 : tensor<i32>) dimensions = [0, 1]
  %2 = linalg.reduce {arith.addf} ins(%z : tensor<2x3xf64>) outs(%c0 : tensor<f64>) dimensions = [0, 1]
  %3 = linalg.reduce {arith.maxnumf} ins(%x : tensor<?x?xf32>) outs(%l0 : tensor<f32>) dimensions = [0, 1]
  return %0, %1, %2, %3 : tensor<f32>, tensor<i32>, tensor<f64>, tensor<f32>
}
"""


def test_reductions_to_one_number() -> None:
    made = devscope.compile(TOTALS, default="opencl:0")
    rng = np.random.default_rng(0)
    y, z = rng.integers(-(2**31), 2**31, (300, 1001)).astype(np.int32), numbers(rng, np.float64, 2, 3)
    for rows, columns in [*SIZES, (1000, 1003)]:
        x = numbers(rng, np.float32, rows, columns)
        total, bits, small, most = made(x, y, z)
        assert total == x.sum()
        assert bits == np.bitwise_xor.reduce(y, axis=None)
        assert small == z.sum()
        assert most == x.max(initial=-np.inf)


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("function", ["absf", "floor", "sqrt", "rsqrt"])
def test_functions_of_short_vectors(function: str, columns: int) -> None:
    """Intel's driver crashes on loops over its own functions of vectors of 4."""
    made = devscope.compile(
        f"""
func.func @main(%x: tensor<?x{columns}xf32>, %w: tensor<{columns}xf32>) -> tensor<?x{columns}xf32> {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%w : tensor<{columns}xf32>) outs(%x : tensor<?x{columns}xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %c = math.{function} %b : f32
    %d = arith.mulf %a, %c : f32
    linalg.yield %d : f32
  }} -> tensor<?x{columns}xf32>
  return %0 : tensor<?x{columns}xf32>
}}
""",
        default="opencl:0",
    )
    rng = np.random.default_rng(columns)
    x, w = rng.uniform(0.5, 9, (5, columns)).astype(np.float32), numbers(rng, np.float32, columns)
    compute = {"absf": np.abs, "floor": np.floor, "sqrt": np.sqrt, "rsqrt": lambda y: 1 / np.sqrt(y)}[function]
    np.testing.assert_allclose(made(x, w), compute(x) * w, rtol=1e-6)


def test_sums_in_any_order_that_are_nan() -> None:
    made = devscope.compile(
        """
func.func @main(%x: tensor<100xf32>, %y: tensor<100xf32>) -> tensor<100xi32> {
  %e = tensor.empty() : tensor<100xi32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x, %y : tensor<100xf32>, tensor<100xf32>) outs(%e : tensor<100xi32>) {
  ^bb0(%a: f32, %b: f32, %old: i32):
    %sum = arith.addf %a, %b fastmath<reassoc,nsz> : f32
    %nan = arith.cmpf uno, %sum, %sum : f32
    %n = arith.extui %nan : i1 to i32
    linalg.yield %n : i32
  } -> tensor<100xi32>
  return %0 : tensor<100xi32>
}
""",
        default="opencl:0",
    )
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    x[[3, 50, 99]], y[7] = np.nan, np.nan
    np.testing.assert_array_equal(made(x, y), np.isnan(x + y))


@pytest.mark.parametrize("columns", [2, 3, 4, 8, 12, 24, 64])
@pytest.mark.parametrize("of", ["i8", "i32", "i64"])
def test_rows_of_truths_are_counted(of: str, columns: int) -> None:
    """LLVM would count the bits of one integer, as wide as there are truths."""
    matrix, vector = f"tensor<?x{columns}xf32>", f"tensor<?x{of}>"
    made = devscope.compile(
        f"""
func.func @main(%x: {matrix}, %y: {matrix}, %start: {vector}) -> {vector} {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x, %y : {matrix}, {matrix}) outs(%start : {vector}) {{
  ^bb0(%a: f32, %b: f32, %sum: {of}):
    %less = arith.cmpf olt, %a, %b : f32
    %one = arith.extui %less : i1 to {of}
    %next = arith.addi %sum, %one : {of}
    linalg.yield %next : {of}
  }} -> {vector}
  return %0 : {vector}
}}
""",
        default="opencl:0",
    )
    rng = np.random.default_rng(columns)
    x, y = rng.standard_normal((2, 37, columns)).astype(np.float32)
    start = rng.integers(0, 9, 37).astype(f"int{of[1:]}")
    np.testing.assert_array_equal(made(x, y, start), start + (x < y).sum(axis=1))


LAST_AXES = """
func.func @main(%x: tensor<?x130x33xf32>) -> (tensor<?x33xf32>, tensor<?x33xi64>, tensor<f32>, tensor<i32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x130x33xf32>
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %none = arith.constant 0 : i32
  %a = tensor.empty(%n) : tensor<?x33xf32>
  %b = tensor.empty(%n) : tensor<?x33xi64>
  %c = tensor.empty() : tensor<f32>
  %d = tensor.empty() : tensor<i32>
  %lows = linalg.fill ins(%low : f32) outs(%a : tensor<?x33xf32>) -> tensor<?x33xf32>
  %zeros = linalg.fill ins(%zero : i64) outs(%b : tensor<?x33xi64>) -> tensor<?x33xi64>
  %lowest = linalg.fill ins(%low : f32) outs(%c : tensor<f32>) -> tensor<f32>
  %first = linalg.fill ins(%none : i32) outs(%d : tensor<i32>) -> tensor<i32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>,
        affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x130x33xf32>) outs(%lows, %zeros : tensor<?x33xf32>, tensor<?x33xi64>) {
  ^bb0(%p: f32, %v: f32, %m: i64):
    %i = linalg.index 2 : index
    %j = arith.index_cast %i : index to i64
    %w = arith.maximumf %p, %v : f32
    %g = arith.cmpf ogt, %p, %v : f32
    %q = arith.select %g, %j, %m : i64
    linalg.yield %w, %q : f32, i64
  } -> (tensor<?x33xf32>, tensor<?x33xi64>)
  %values = tensor.collapse_shape %0#0 [[0, 1]] : tensor<?x33xf32> into tensor<?xf32>
  %1:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
        iterator_types = ["reduction"]}
      ins(%values : tensor<?xf32>) outs(%lowest, %first : tensor<f32>, tensor<i32>) {
  ^bb0(%p: f32, %v: f32, %m: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %w = arith.maximumf %p, %v : f32
    %g = arith.cmpf ogt, %p, %v : f32
    %q = arith.select %g, %j, %m : i32
    linalg.yield %w, %q : f32, i32
  } -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<?x33xf32>, tensor<?x33xi64>, tensor<f32>, tensor<i32>
}
"""


@pytest.mark.parametrize(("device", "extents"), [("opencl:0", (1, 7, 40)), ("cuda:0", (1, 3))])
def test_choices_along_other_axes_and_of_all(
    device: str, extents: Sequence[int], cuda: Callable[[], AbstractContextManager[object]]
) -> None:
    with cuda() if device == "cuda:0" else nullcontext():
        made = devscope.compile(LAST_AXES, default=device)
        rng = np.random.default_rng(5)
        for extent in extents:
            x = rng.integers(-40, 40, (extent, 130, 33)).astype(np.float32)
            values, places, best, place = made(x)
            np.testing.assert_array_equal(values, x.max(axis=1))
            np.testing.assert_array_equal(places, x.argmax(axis=1))
            assert best == x.max()
            assert place == x.max(axis=1).argmax()


@pytest.mark.parametrize("element", ["i32", "i8", "f32"])
def test_choices_among_few_elements(element: str) -> None:
    """Intel's driver crashes on loops around them."""
    least, most, more = (0, "maxsi", "cmpi sgt") if element[0] == "i" else ("0.0", "maximumf", "cmpf ogt")
    made = devscope.compile(
        f"""
func.func @main(%x: tensor<4x70x3x{element}>) -> tensor<4x70xi64> {{
  %low = arith.constant {least} : {element}
  %zero = arith.constant 0 : i64
  %a = tensor.empty() : tensor<4x70x{element}>
  %b = tensor.empty() : tensor<4x70xi64>
  %lows = linalg.fill ins(%low : {element}) outs(%a : tensor<4x70x{element}>) -> tensor<4x70x{element}>
  %zeros = linalg.fill ins(%zero : i64) outs(%b : tensor<4x70xi64>) -> tensor<4x70xi64>
  %0:2 = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>,
        affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x : tensor<4x70x3x{element}>) outs(%lows, %zeros : tensor<4x70x{element}>, tensor<4x70xi64>) {{
  ^bb0(%p: {element}, %v: {element}, %m: i64):
    %i = linalg.index 2 : index
    %j = arith.index_cast %i : index to i64
    %w = arith.{most} %p, %v : {element}
    %g = arith.{more}, %p, %v : {element}
    %q = arith.select %g, %j, %m : i64
    linalg.yield %w, %q : {element}, i64
  }} -> (tensor<4x70x{element}>, tensor<4x70xi64>)
  return %0#1 : tensor<4x70xi64>
}}
""",
        default="opencl:0",
    )
    type_ = {"i32": np.int32, "i8": np.int8, "f32": np.float32}[element]
    x = np.random.default_rng(3).integers(0, 9, (4, 70, 3)).astype(type_)
    np.testing.assert_array_equal(made(x), x.argmax(axis=2))


@pytest.mark.parametrize("of", ["f32", "i32", "i8"])
def test_extrema_of_short_vectors(of: str) -> None:
    """Over a middle axis: so are the minima and maxima of numbers."""
    kinds = ("maxnumf", "minnumf") if of == "f32" else ("maxsi", "minui", "absi")
    bodies = "\n".join(
        f"""
  %{kind} = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>],
      iterator_types = ["parallel", "reduction", "parallel"]}}
      ins(%x : tensor<?x2x2x{of}>) outs(%z : tensor<?x2x{of}>) {{
  ^bb0(%a: {of}, %b: {of}):
    %c = {"math.absi %a" if kind == "absi" else f"arith.{kind} %b, %a"} : {of}
    %d = {"arith.addi %c, %b" if kind == "absi" else f"arith.{kind} %c, %c"} : {of}
    linalg.yield %d : {of}
  }} -> tensor<?x2x{of}>"""
        for kind in kinds
    )
    results = ", ".join(f"%{kind}" for kind in kinds)
    types = ", ".join([f"tensor<?x2x{of}>"] * len(kinds))
    made = devscope.compile(
        f"func.func @main(%x: tensor<?x2x2x{of}>, %z: tensor<?x2x{of}>) -> ({types}) {{\n"
        f"{bodies}\n  return {results} : {types}\n}}",
        default="opencl:0",
    )
    x = np.random.default_rng(0).integers(-9, 9, (5, 2, 2)).astype(TYPES[of])
    z = np.zeros((5, 2), x.dtype)
    unsigned = x.view(f"u{x.itemsize}") if of != "f32" else x
    wanted = [x.max(1, initial=0), np.minimum(unsigned.min(1), 0 if of != "f32" else z).astype(x.dtype)]
    for found, right in zip(made(x, z), [*wanted, np.abs(x).sum(1)], strict=False):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("shape", [(16, 17), (3, 8, 16)])
def test_extrema_of_short_nests(shape: tuple[int, ...]) -> None:
    """The driver did not come to an end with nests of short loops."""
    of, zeros = "x".join(map(str, shape)), ", ".join(str(axis) for axis in range(len(shape)))
    made = devscope.compile(
        f"""func.func @main(%x: tensor<{of}xf32>) -> (tensor<f32>, tensor<f32>) {{
  %least = arith.constant dense<0xFF800000> : tensor<f32>
  %most = arith.constant dense<0x7F800000> : tensor<f32>
  %0 = linalg.reduce {{arith.minimumf}} ins(%x : tensor<{of}xf32>)
    outs(%most : tensor<f32>) dimensions = [{zeros}]
  %1 = linalg.reduce {{arith.maximumf}} ins(%x : tensor<{of}xf32>)
    outs(%least : tensor<f32>) dimensions = [{zeros}]
  return %0, %1 : tensor<f32>, tensor<f32>
}}
""",
        default="opencl:0",
    )
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(made(x), (x.min(), x.max()))
    x.flat[-1] = np.nan
    assert np.isnan(made(x)).all()


def test_sums_of_functions_in_nests() -> None:
    """The driver crashed where an inner loop of vectors leaves one iteration over."""
    functions = "\n".join(
        f"""func.func @{name}(%x: tensor<2x129xf32>, %s: tensor<f32>) -> tensor<f32> {{
          %0 = linalg.reduce ins(%x : tensor<2x129xf32>) outs(%s : tensor<f32>) dimensions = [0, 1]
            (%a: f32, %b: f32) {{
              %c = math.{name} %a : f32
              %d = arith.addf %b, %c : f32
              linalg.yield %d : f32
            }}
          return %0 : tensor<f32>
        }}"""
        for name in ("sin", "absf")
    )
    made = devscope.compile(functions, default="opencl:0")
    x, zero = np.random.default_rng(0).standard_normal((2, 129)).astype(np.float32), np.zeros((), np.float32)
    for name, compute in (("sin", np.sin), ("absf", np.abs)):
        np.testing.assert_allclose(made.run(name, x, zero), compute(x).sum(dtype=np.float64), 1e-4)


@pytest.mark.parametrize("shape", [(18, 30, 12), (3, 6, 6, 5, 12)])
def test_products_taken_off_in_short_nests(shape: tuple[int, ...]) -> None:
    """The driver made another number of them where the nest was one loop."""
    of, maps = "x".join(map(str, shape)), ", ".join(f"d{axis}" for axis in range(len(shape)))
    kinds = ", ".join(['"reduction"'] * len(shape))
    made = devscope.compile(
        f"""#all = affine_map<({maps}) -> ({maps})>
#none = affine_map<({maps}) -> ()>
func.func @main(%x: tensor<{of}xf32>, %y: tensor<{of}xf32>) -> tensor<f32> {{
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.generic {{indexing_maps = [#all, #all, #none], iterator_types = [{kinds}]}}
    ins(%x, %y : tensor<{of}xf32>, tensor<{of}xf32>) outs(%zero : tensor<f32>) {{
  ^bb0(%a: f32, %b: f32, %s: f32):
    %less = arith.negf %a : f32
    %product = arith.mulf %less, %b : f32
    %next = arith.addf %s, %product : f32
    linalg.yield %next : f32
  }} -> tensor<f32>
  return %sum : tensor<f32>
}}
""",
        default="opencl:0",
    )
    x, y = np.random.default_rng(0).random((2, *shape), np.float32)
    np.testing.assert_allclose(made(x, y), -(x * y).sum(dtype=np.float64), rtol=1e-5)


_OWN_BUFFERS = """
func.func @main(%x: tensor<7x5xf32>, %o: tensor<7xf32>) -> tensor<7xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0.0> : tensor<2xf32>
  %r = scf.forall (%i) in (7) shared_outs(%out = %o) -> (tensor<7xf32>) {
    %two = scf.for %j = %c0 to %c5 step %c1 iter_args(%t = %zero) -> (tensor<2xf32>) {
      %v = tensor.extract %x[%i, %j] : tensor<7x5xf32>
      %p = arith.andi %j, %c1 : index
      %old = tensor.extract %t[%p] : tensor<2xf32>
      %new = arith.addf %old, %v : f32
      %u = tensor.insert %new into %t[%p] : tensor<2xf32>
      scf.yield %u : tensor<2xf32>
    }
    %a = tensor.extract %two[%c0] : tensor<2xf32>
    %b = tensor.extract %two[%c1] : tensor<2xf32>
    %d = arith.subf %a, %b : f32
    %one = tensor.from_elements %d : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %one into %out[%i] [1] [1] : tensor<1xf32> into tensor<7xf32>
    }
  }
  return %r : tensor<7xf32>
}
"""


def test_iterations_have_buffers_of_their_own() -> None:
    x = np.arange(35, dtype=np.float32).reshape(7, 5) ** 2
    with devscope.compile(_OWN_BUFFERS, default="opencl:0", cache=False) as program:
        found = program(x, np.zeros(7, np.float32))
    np.testing.assert_array_equal(found, x[:, ::2].sum(1) - x[:, 1::2].sum(1))


_LARGE_BUFFERS = """
func.func @main(%x: tensor<6x5x?xf32>) -> tensor<6x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %r = scf.forall (%i) = (0) to (6) step (2) shared_outs(%o = %e) -> (tensor<6x5xf32>) {
    %two = tensor.extract_slice %o[%i, 0] [2, 5] [1, 1] : tensor<6x5xf32> to tensor<2x5xf32>
    %in = scf.forall (%h, %j) in (2, 5) shared_outs(%p = %two) -> (tensor<2x5xf32>) {
      %n = tensor.dim %x, %c2 : tensor<6x5x?xf32>
      %k = arith.addi %i, %h : index
      %row = tensor.extract_slice %x[%k, %j, 0] [1, 1, %n] [1, 1, 1] : tensor<6x5x?xf32> to tensor<?xf32>
      %t = tensor.empty(SIZE) : tensor<?xf32>
      %sums:2 = scf.for %l = %c0 to %n step %c1 iter_args(%s = %zero, %b = %t) -> (f32, tensor<?xf32>) {
        %v = tensor.extract %row[%l] : tensor<?xf32>
        %s2 = arith.addf %s, %v : f32
        %b2 = tensor.insert %s2 into %b[%l] : tensor<?xf32>
        scf.yield %s2, %b2 : f32, tensor<?xf32>
      }
      %all = scf.for %l = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
        %v = tensor.extract %sums#1[%l] : tensor<?xf32>
        %s2 = arith.addf %s, %v : f32
        scf.yield %s2 : f32
      }
      %one = tensor.from_elements %all : tensor<1x1xf32>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %one into %p[%h, %j] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<2x5xf32>
      }
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %in into %o[%i, 0] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<6x5xf32>
    }
  }
  return %r : tensor<6x5xf32>
}
"""


def test_large_buffers_of_iterations_are_made_before_their_loop() -> None:
    """In kernels, which allocate nothing; here in a loop within another one, of a size that the call says."""
    with devscope.compile(_LARGE_BUFFERS.replace("SIZE", "%n"), default="opencl:0", cache=False) as program:
        for size in (1500, 1, 0):
            x = np.random.default_rng(size).integers(-9, 9, (6, 5, size)).astype(np.float32)
            np.testing.assert_array_equal(program(x), x.cumsum(-1).sum(-1))


def test_buffers_that_kernels_cannot_have() -> None:
    with pytest.raises(LoweringError, match="a kernel cannot make a buffer whose size is computed in a parallel"):
        devscope.compile(_LARGE_BUFFERS.replace("SIZE", "%k"), default="opencl:0")
    carried = """
          %f = tensor.empty() : tensor<2xf32>
          %g = tensor.insert %v into %f[%c0] : tensor<2xf32>
          %d = tensor.extract %t[%c0] : tensor<2xf32>
          %u = tensor.insert %d into %g[%c1] : tensor<2xf32>
    """
    program = re.sub(r"\n *%p = .*\n.*\n.*\n.*%u = .*\n", carried, _OWN_BUFFERS)
    with pytest.raises(LoweringError, match="a kernel cannot make a new buffer in each iteration of a loop that"):
        devscope.compile(program, default="opencl:0")
