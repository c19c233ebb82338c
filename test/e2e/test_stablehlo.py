"""StableHLO that upstream's passes leave, on the host and on a device. Random programs: test/stablehlo."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope

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


FORMATS = ("e5m2", "e4m3", "e3m4", "e4m3fn", "e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz")


def test_floats_of_eight_bits() -> None:
    """All codes to f32 and back, and numbers next to and between them."""
    names = {name: f"f8{name.upper()}" for name in FORMATS}
    text = "".join(
        f"""
        func.func @{name}(%x: tensor<256x{of}>, %y: tensor<2000xf32>) -> (tensor<256xf32>, tensor<2000x{of}>) {{
          %0 = stablehlo.convert %x : (tensor<256x{of}>) -> tensor<256xf32>
          %1 = stablehlo.convert %y : (tensor<2000xf32>) -> tensor<2000x{of}>
          return %0, %1 : tensor<256xf32>, tensor<2000x{of}>
        }}"""
        for name, of in names.items()
    )
    rng = np.random.default_rng(3)
    codes = np.arange(256, dtype=np.uint8)
    with devscope.compile(text, cache=False) as program:
        for name in names:
            dtype = np.dtype(getattr(ml_dtypes, f"float8_{name}"))
            exact = codes.view(dtype).astype(np.float32)
            finite = np.sort(exact[np.isfinite(exact)])
            numbers = np.concatenate([exact, (finite[1:] + finite[:-1]) / 2, [1e9, -1e9, 1e-30]])
            numbers = np.concatenate([numbers, rng.standard_normal(2000 - len(numbers))]).astype(np.float32)
            wide, narrow = program.run(name, codes.view(dtype), numbers)
            np.testing.assert_array_equal(wide, exact)
            np.testing.assert_array_equal(narrow.astype(np.float32), numbers.astype(dtype).astype(np.float32))
