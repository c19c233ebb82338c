"""StableHLO that upstream's passes leave, on the host and on a device. Random programs: test/stablehlo."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError

PROGRAM = """
func.func @scatter(%x: tensor<4x3xf32>, %i: tensor<5x1xi32>, %u: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<5x1xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
func.func @sort(%x: tensor<?x7xf32>, %y: tensor<?x7xi32>) -> (tensor<?x7xf32>, tensor<?x7xi32>) {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %l = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<?x7xf32>, tensor<?x7xi32>) -> (tensor<?x7xf32>, tensor<?x7xi32>)
  return %0#0, %0#1 : tensor<?x7xf32>, tensor<?x7xi32>
}
func.func @solve(%m: tensor<2x3x3xf64>, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %l = stablehlo.cholesky %m, lower = true : tensor<2x3x3xf64>
  %0 = "stablehlo.triangular_solve"(%l, %b) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  %1 = "stablehlo.triangular_solve"(%l, %0) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose ADJOINT>}> : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %1 : tensor<2x3x2xf64>
}
func.func @fft(%x: tensor<2x96xcomplex<f64>>) -> tensor<2x96xcomplex<f64>> {
  %0 = stablehlo.fft %x, type = FFT, length = [96] : (tensor<2x96xcomplex<f64>>) -> tensor<2x96xcomplex<f64>>
  return %0 : tensor<2x96xcomplex<f64>>
}
func.func @philox(%s: tensor<2xi64>) -> (tensor<2xi64>, tensor<8xi32>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xi64>) -> (tensor<2xi64>, tensor<8xi32>)
  return %0, %1 : tensor<2xi64>, tensor<8xi32>
}
func.func @largest(%x: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 3>,
      window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @brain(%x: tensor<6xbf16>, %y: tensor<6xbf16>) -> tensor<6xf32> {
  %0 = stablehlo.add %x, %y : tensor<6xbf16>
  %1 = stablehlo.convert %0 : (tensor<6xbf16>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Any:
    with devscope.compile(PROGRAM, default=request.param, cache=False) as executable:
        yield executable


def test_scatter_folds_all_updates_but_those_outside(program: Any) -> None:
    x, u = np.ones((4, 3), np.float32), np.arange(15, dtype=np.float32).reshape(5, 3)
    expected = x.copy()
    np.add.at(expected, [1, 1, 3], u[[0, 1, 3]])
    np.testing.assert_array_equal(
        program.run("scatter", x, np.array([[1], [1], [4], [3], [-1]], np.int32), u), expected
    )


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_sort_is_stable_and_total(program: Any, rows: int) -> None:
    row = np.array([2, np.nan, -0.0, 2, 0.0, -np.inf, 1], np.float32)
    x, y = np.tile(row, (rows, 1)), np.tile(np.arange(7, dtype=np.int32), (rows, 1))
    values, places = program.run("sort", x, y)
    order = [5, 2, 4, 6, 0, 3, 1]
    np.testing.assert_array_equal(places, np.tile(np.array(order, np.int32), (rows, 1)))
    np.testing.assert_array_equal(values, x[:, order])


def test_factors_solve_systems(program: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3, 3)), rng.standard_normal((2, 3, 2))
    m = a @ np.swapaxes(a, 1, 2) + 3 * np.eye(3)
    np.testing.assert_allclose(program.run("solve", m, b), np.linalg.solve(m, b), rtol=1e-10)


def test_fft(program: Any) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 96)) + 1j * rng.standard_normal((2, 96))
    np.testing.assert_allclose(program.run("fft", x), np.fft.fft(x), atol=1e-12)


@pytest.mark.parametrize("n", [8, 67, 132])
def test_fft_of_real_numbers(n: int) -> None:
    """As a product, of an odd number of numbers, and as half as many complex ones; there and back."""
    text = f"""
      func.func @main(%x: tensor<3x{n}xf64>, %c: tensor<3x{n // 2 + 1}xcomplex<f64>>)
          -> (tensor<3x{n // 2 + 1}xcomplex<f64>>, tensor<3x{n}xf64>) {{
        %0 = stablehlo.fft %x, type = RFFT, length = [{n}]
          : (tensor<3x{n}xf64>) -> tensor<3x{n // 2 + 1}xcomplex<f64>>
        %1 = stablehlo.fft %c, type = IRFFT, length = [{n}]
          : (tensor<3x{n // 2 + 1}xcomplex<f64>>) -> tensor<3x{n}xf64>
        return %0, %1 : tensor<3x{n // 2 + 1}xcomplex<f64>>, tensor<3x{n}xf64>
      }}"""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((3, n))
    c = rng.standard_normal((3, n // 2 + 1)) + 1j * rng.standard_normal((3, n // 2 + 1))
    forward, back = devscope.run(text, x, c, cache=False)
    np.testing.assert_allclose(forward, np.fft.rfft(x), atol=1e-12)
    np.testing.assert_allclose(back, np.fft.irfft(c, n), atol=1e-12)


def test_random_bits_are_those_of_xla(program: Any) -> None:
    state, bits = program.run("philox", np.array([5, 7]))
    assert state.tolist() == [5, 9]
    assert bits.view(np.uint32).tolist() == [
        *(0x74A851F1, 0xC4A35BA8, 0x82800AA7, 0xAF5F7739, 0xF093503C, 0xCDB47EB1, 0x928CBBD9, 0x67547B88)
    ]  # fmt: skip


def test_windows_scatter_to_their_largest(program: Any) -> None:
    x, s = np.array([1, 5, 5, 2], np.float32), np.array([10, 1], np.float32)
    assert program.run("largest", x, s).tolist() == [0, 11, 0, 0]


def test_brain_floats_are_rounded_between_operations(program: Any) -> None:
    x, y = (
        np.array(v).astype(ml_dtypes.bfloat16) for v in ([1, -2, np.nan, np.inf, -0.0, 3.3], [0.3, 1, 2, 1, 0, 90])
    )
    np.testing.assert_array_equal(program.run("brain", x, y), (x + y).astype(np.float32))


FORMATS = {
    **{f"f8{name}": f"float8_{name.lower()}" for name in ("E5M2", "E4M3", "E3M4", "E4M3FN", "E5M2FNUZ")},
    **{f"f8{name}": f"float8_{name.lower()}" for name in ("E4M3FNUZ", "E4M3B11FNUZ", "E8M0FNU")},
    **{"f4E2M1FN": "float4_e2m1fn", "f6E2M3FN": "float6_e2m3fn", "f6E3M2FN": "float6_e3m2fn"},
}


def test_small_floats() -> None:
    """All codes to f32 and back, and numbers next to and between them."""
    text = "".join(
        f"""
        func.func @{of}(%x: tensor<?x{of}>, %y: tensor<2000xf32>) -> (tensor<?xf32>, tensor<2000x{of}>) {{
          %0 = stablehlo.convert %x : (tensor<?x{of}>) -> tensor<?xf32>
          %1 = stablehlo.convert %y : (tensor<2000xf32>) -> tensor<2000x{of}>
          return %0, %1 : tensor<?xf32>, tensor<2000x{of}>
        }}"""
        for of in FORMATS
    )
    rng = np.random.default_rng(3)
    with devscope.compile(text, cache=False) as program:
        for of, name in FORMATS.items():
            codes = np.arange(1 << {"4": 4, "6": 6, "8": 8}[of[1]], dtype=np.uint8)
            dtype = np.dtype(getattr(ml_dtypes, name))
            exact = codes.view(dtype).astype(np.float32)
            finite = np.sort(exact[np.isfinite(exact)])
            numbers = np.concatenate([exact, (finite[1:] + finite[:-1]) / 2, [1e9, -1e9, 1e-30]])
            numbers = np.concatenate([numbers, rng.standard_normal(2000 - len(numbers))]).astype(np.float32)
            wide, narrow = program.run(of, codes.view(dtype), numbers)
            np.testing.assert_array_equal(wide, exact)
            np.testing.assert_array_equal(narrow.astype(np.float32), numbers.astype(dtype).astype(np.float32))


def test_floats_without_nan_make_zero_of_it() -> None:
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf4E2M1FN> {
      %0 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xf4E2M1FN>
      return %0 : tensor<3xf4E2M1FN>
    }"""
    with devscope.compile(text, cache=False) as program:
        got = program.run("main", np.array([np.nan, np.inf, -np.inf], np.float32))
    assert got.view(np.uint8).tolist() == [8, 7, 15]


@pytest.mark.parametrize("of", ["i4", "ui2", "ui16", "f8E4M3FN", "f4E2M1FN"])
def test_small_types_pass_through(of: str) -> None:
    text = f"func.func @main(%x: tensor<3x{of}>) -> tensor<3x{of}> {{ return %x : tensor<3x{of}> }}"
    dtype = np.uint16 if of == "ui16" else getattr(ml_dtypes, {"i4": "int4", "ui2": "uint2", **FORMATS}[of])
    x = np.array([1, 0, 2]).astype(dtype)
    with devscope.compile(text, cache=False) as program:
        got = program.run("main", x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


BROADCASTS = """
func.func @to(%x: tensor<?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @static(%x: tensor<3xf32>, %s: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0] : (tensor<3xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = chlo.broadcast_add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def broadcasts(request: pytest.FixtureRequest) -> Any:
    with devscope.compile(BROADCASTS, default=request.param, cache=False) as executable:
        yield executable


@pytest.mark.parametrize("size", [1, 3])
def test_dimensions_of_size_one_grow(broadcasts: Any, size: int) -> None:
    x, y = np.arange(size, dtype=np.float32), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(broadcasts.run("to", x, np.array([2, 3])), np.broadcast_to(x, (2, 3)))
    np.testing.assert_array_equal(broadcasts.run("add", x, y), x + y)
    np.testing.assert_array_equal(broadcasts.run("add", y, x), x + y)


def test_other_dimensions_do_not(broadcasts: Any) -> None:
    x, y = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    with pytest.raises(ExecutionError, match="is neither 1 nor that of the result"):
        broadcasts.run("to", x, np.array([2, 5]))
    with pytest.raises(ExecutionError, match="of the result is 5, dimension 0 of operand 0 is 3"):
        broadcasts.run("static", x, np.array([5], np.int32))
    with pytest.raises(devscope.DevscopeError):
        broadcasts.run("add", x, y)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("of", ["f32", "ui8"])
@pytest.mark.parametrize(("axis", "row"), [(0, 40), (1, 40), (2, 3), (2, 70), (1, 0)])
def test_concatenations(axis: int, row: int, of: str, target: str) -> None:
    """With rows long enough to be copied, with short ones, and of nothing; elements then go through arithmetic."""
    shapes = [[2, 3, row] for _ in range(3)]
    for number, extents in enumerate(shapes):
        extents[axis] += number
    rng = np.random.default_rng(4)
    given = [rng.integers(0, 50, extents).astype({"f32": np.float32, "ui8": np.uint8}[of]) for extents in shapes]
    want = np.concatenate([2 * given[0], *given[1:]], axis)
    types = [f"tensor<{'x'.join(map(str, each.shape))}x{of}>" for each in (*given, want)]
    text = f"""func.func @main(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {types[3]} {{
      %d = stablehlo.add %a, %a : {types[0]}
      %0 = stablehlo.concatenate %d, %b, %c, dim = {axis} : ({", ".join(types[:3])}) -> {types[3]}
      %1 = stablehlo.multiply %0, %0 : {types[3]}
      return %1 : {types[3]}
    }}"""
    with devscope.compile(text, default=target, cache=False) as program:
        np.testing.assert_array_equal(program.run("main", *given), want * want)
