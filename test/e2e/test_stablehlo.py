"""StableHLO that upstream's passes leave, on the host and on a device. Random programs: test/stablehlo."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError

pytestmark = pytest.mark.sampled(6)

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
func.func @first_largest(%x: tensor<3x3xi32>, %s: tensor<2x2xi32>) -> (tensor<3x3xi32>, tensor<2x2xi32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %t = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %t : tensor<i32>
  }) : (tensor<3x3xi32>, tensor<2x2xi32>, tensor<i32>) -> tensor<3x3xi32>
  %i = stablehlo.iota dim = 0 : tensor<9xi32>
  %p = stablehlo.reshape %i : (tensor<9xi32>) -> tensor<3x3xi32>
  %m = stablehlo.constant dense<-1> : tensor<i32>
  %1:2 = "stablehlo.reduce_window"(%x, %p, %m, %m) <{window_dimensions = array<i64: 2, 2>,
      window_strides = array<i64: 2, 2>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %c: tensor<i32>, %b: tensor<i32>, %d: tensor<i32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %e = stablehlo.select %g, %a, %b : tensor<i1>, tensor<i32>
    %f = stablehlo.select %g, %c, %d : tensor<i1>, tensor<i32>
    stablehlo.return %e, %f : tensor<i32>, tensor<i32>
  }) : (tensor<3x3xi32>, tensor<3x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2x2xi32>, tensor<2x2xi32>)
  return %0, %1#1 : tensor<3x3xi32>, tensor<2x2xi32>
}
func.func @folds(%x: tensor<3x4xbf16>, %y: tensor<34xbf16>, %z: tensor<4xf32>)
    -> (tensor<3xbf16>, tensor<3x3xbf16>, tensor<bf16>, tensor<3xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %d = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<3x4xbf16>, tensor<bf16>) -> tensor<3xbf16>
  %1 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 3>,
      padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %s = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %s : tensor<bf16>
  }) : (tensor<3x4xbf16>, tensor<bf16>) -> tensor<3x3xbf16>
  %2 = stablehlo.reduce(%y init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<34xbf16>, tensor<bf16>) -> tensor<bf16>
  %3 = "stablehlo.reduce_window"(%z, %d) <{window_dimensions = array<i64: 3>,
      padding = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    %p = stablehlo.multiply %a, %b : tensor<f32>
    %t = stablehlo.add %s, %p : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1, %2, %3 : tensor<3xbf16>, tensor<3x3xbf16>, tensor<bf16>, tensor<3xf32>
}
func.func @largest_of_unsigned(%x: tensor<2x16xui8>) -> tensor<2x2xui8> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
    %g = stablehlo.compare GT, %a, %b : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }) : (tensor<2x16xui8>) -> tensor<2x16xui8>
  %1 = stablehlo.slice %0 [0:2, 0:2] : (tensor<2x16xui8>) -> tensor<2x2xui8>
  return %1 : tensor<2x2xui8>
}
func.func @cropped(%x: tensor<1x3xf32>) -> (tensor<2x4xf32>, tensor<0x3xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 2>,
      padding = dense<[[-1, 2], [-1, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x4xf32>
  %1 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1x3xf32>, tensor<f32>) -> tensor<0x3xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<0x3xf32>
}
func.func @brain(%x: tensor<6xbf16>, %y: tensor<6xbf16>) -> (tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>) {
  %0 = stablehlo.add %x, %y : tensor<6xbf16>
  %1 = stablehlo.subtract %0, %x : tensor<6xbf16>
  %2 = stablehlo.convert %1 : (tensor<6xbf16>) -> tensor<6xf32>
  %3 = stablehlo.convert %2 : (tensor<6xf32>) -> tensor<6xbf16>
  %4 = stablehlo.convert %3 : (tensor<6xbf16>) -> tensor<6xf32>
  return %2, %1, %4 : tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>
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


@pytest.mark.parametrize("n", [1, 12, 23, 132, 160, 769])
def test_fft_of_real_numbers(n: int) -> None:
    """One element, steps of all transforms at once, one product, steps of rows and of columns, twice, and a
    convolution, of a long prime number; there and back."""
    text = f"""
      func.func @main(%x: tensor<8x{n}xf64>, %c: tensor<8x{n // 2 + 1}xcomplex<f64>>)
          -> (tensor<8x{n // 2 + 1}xcomplex<f64>>, tensor<8x{n}xf64>) {{
        %0 = stablehlo.fft %x, type = RFFT, length = [{n}]
          : (tensor<8x{n}xf64>) -> tensor<8x{n // 2 + 1}xcomplex<f64>>
        %1 = stablehlo.fft %c, type = IRFFT, length = [{n}]
          : (tensor<8x{n // 2 + 1}xcomplex<f64>>) -> tensor<8x{n}xf64>
        return %0, %1 : tensor<8x{n // 2 + 1}xcomplex<f64>>, tensor<8x{n}xf64>
      }}"""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((8, n))
    c = rng.standard_normal((8, n // 2 + 1)) + 1j * rng.standard_normal((8, n // 2 + 1))
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


def test_the_first_of_equal_elements_of_a_padded_window(program: Any) -> None:
    """XLA folds the last column of a window that is partly outside behind all rows of the others.

    Where windows scatter, JAX pads first for processors: then it looks at them in row-major order.
    """
    x = np.array([[0, 1, 7], [1, 0, 7], [5, 5, 5]], np.int32)
    scattered, places = program.run("first_largest", x, np.array([[10, 20], [30, 40]], np.int32))
    assert scattered.tolist() == [[0, 10, 20], [0, 0, 0], [30, 0, 40]]
    assert places.tolist() == [[3, 2], [6, 8]]


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_images_of_any_size_scatter_to_their_largest(target: str) -> None:
    """Intel's driver for CPUs read other elements than the best of a window, at places that divisions made."""
    image, windows = "tensor<2x28x29x8xf32>", "tensor<2x14x15x8xf32>"
    text = f"""func.func @main(%x: {image}, %s: {windows}) -> {image} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{{window_dimensions = array<i64: 1, 3, 3, 1>,
          padding = dense<[[0, 0], [0, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>,
          window_strides = array<i64: 1, 2, 2, 1>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }}) : ({image}, {windows}, tensor<f32>) -> {image}
      return %0 : {image}
    }}"""
    x = np.random.default_rng(0).standard_normal((2, 28, 29, 8)).astype(np.float32)
    s = np.arange(3360, dtype=np.float32).reshape(2, 14, 15, 8)
    padded = np.pad(x, ((0, 0), (0, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    parts = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    best = parts.reshape(2, 14, 15, 8, 9).argmax(-1)
    n, row, column, channel = np.indices(best.shape)
    want = np.zeros_like(padded)
    np.add.at(want, (n, 2 * row + best // 3, 2 * column + best % 3, channel), s)
    got = devscope.run(text, x, s, default=target, cache=False)
    np.testing.assert_array_equal(got, want[:, :28, 1:30])


def test_folds_are_those_of_xla(program: Any) -> None:
    """Short sums of bf16 are rounded at each step, longer ones once; nothing is made of infinity and padding."""
    x = np.array([[256, 1, 1, 1], [1, 1, 1, 256], [256, 1, np.nan, np.inf]], ml_dtypes.bfloat16)
    y, z = np.full(34, 1, ml_dtypes.bfloat16), np.array([1, 5, 2, np.inf], np.float32)
    y[0] = 256
    sums, windows, long, products = program.run("folds", x, y, z)
    nan = np.nan
    np.testing.assert_array_equal(sums.astype(np.float32), [256, 260, nan])
    np.testing.assert_array_equal(windows.astype(np.float32), [[256, 3, 2], [3, 258, 256], [nan, nan, nan]])
    assert long == 288
    np.testing.assert_array_equal(products, [35, np.inf, np.inf])


def test_few_of_unsigned(program: Any) -> None:
    x = np.random.default_rng(6).integers(0, 256, (2, 16)).astype(np.uint8)
    np.testing.assert_array_equal(program.run("largest_of_unsigned", x), np.sort(x)[:, :-3:-1])


def test_windows_of_what_padding_leaves(program: Any) -> None:
    padded, none = program.run("cropped", np.array([[1, 2, 3]], np.float32))
    assert padded.tolist() == [[0, 0, 0, 0]] * 2
    assert none.shape == (0, 3)


def test_brain_floats_are_rounded_between_operations(program: Any) -> None:
    """But not in front of a conversion to f32, as in what XLA makes for processors."""
    x, y = (
        np.array(v).astype(ml_dtypes.bfloat16)
        for v in ([1, -2, np.nan, np.inf, -0.0, 3.3], [0.3, 1e-3, 2, 1, 0, 90])
    )
    with np.errstate(invalid="ignore"):
        exact = (x + y).astype(np.float32) - x.astype(np.float32)
    wide, narrow, rounded = program.run("brain", x, y)
    np.testing.assert_array_equal(wide, exact)
    np.testing.assert_array_equal(narrow.astype(np.float32), rounded)
    np.testing.assert_array_equal(rounded, exact.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_sums_of_brain_floats_keep_their_digits(target: str) -> None:
    text = """func.func @main(%x: tensor<3x70xbf16>, %y: tensor<70x4xbf16>) -> tensor<3x4xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<3x70xbf16>, tensor<70x4xbf16>) -> tensor<3x4xbf16>
      %1 = stablehlo.convert %0 : (tensor<3x4xbf16>) -> tensor<3x4xf32>
      return %1 : tensor<3x4xf32>
    }"""
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(extents).astype(ml_dtypes.bfloat16) for extents in [(3, 70), (70, 4)])
    want = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(devscope.run(text, x, y, default=target, cache=False), want, 1e-5, 1e-5)


FORMATS = {
    **{f"f8{name}": f"float8_{name.lower()}" for name in ("E5M2", "E4M3", "E3M4", "E4M3FN", "E5M2FNUZ")},
    **{f"f8{name}": f"float8_{name.lower()}" for name in ("E4M3FNUZ", "E4M3B11FNUZ", "E8M0FNU")},
    **{"f4E2M1FN": "float4_e2m1fn", "f6E2M3FN": "float6_e2m3fn", "f6E3M2FN": "float6_e3m2fn"},
}


@pytest.mark.long
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


NORMALISATIONS = """
func.func @inference(%x: tensor<?x2x3xOF>, %s: tensor<2xOF>, %o: tensor<2xOF>, %m: tensor<2xOF>, %v: tensor<2xOF>)
    -> tensor<?x2x3xOF> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 0.5 : f32, feature_index = 1 : i64}
    : (tensor<?x2x3xOF>, tensor<2xOF>, tensor<2xOF>, tensor<2xOF>, tensor<2xOF>) -> tensor<?x2x3xOF>
  return %0 : tensor<?x2x3xOF>
}
func.func @training(%x: tensor<?x2x3xOF>, %s: tensor<2xOF>, %o: tensor<2xOF>)
    -> (tensor<?x2x3xOF>, tensor<2xOF>, tensor<2xOF>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 0.5 : f32, feature_index = 1 : i64}
    : (tensor<?x2x3xOF>, tensor<2xOF>, tensor<2xOF>) -> (tensor<?x2x3xOF>, tensor<2xOF>, tensor<2xOF>)
  return %0#0, %0#1, %0#2 : tensor<?x2x3xOF>, tensor<2xOF>, tensor<2xOF>
}
func.func @gradients(
    %x: tensor<4x2x3xOF>, %s: tensor<2xOF>, %m: tensor<2xOF>, %v: tensor<2xOF>, %g: tensor<4x2x3xOF>)
    -> (tensor<4x2x3xOF>, tensor<2xOF>, tensor<2xOF>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {epsilon = 0.5 : f32, feature_index = 1 : i64}
    : (tensor<4x2x3xOF>, tensor<2xOF>, tensor<2xOF>, tensor<2xOF>, tensor<4x2x3xOF>)
    -> (tensor<4x2x3xOF>, tensor<2xOF>, tensor<2xOF>)
  return %0#0, %0#1, %0#2 : tensor<4x2x3xOF>, tensor<2xOF>, tensor<2xOF>
}
"""


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("of", ["f64", "f16"])
def test_batch_normalisation(of: str, target: str) -> None:
    """Gradients beside what a small step of an element changes."""
    rng = np.random.default_rng(6)
    dtype, near = {"f64": (np.float64, 1e-12), "f16": (np.float16, 1e-2)}[of]
    x, g = (rng.standard_normal((4, 2, 3)).astype(dtype) for _ in range(2))
    s, o, m, v = (rng.uniform(0.5, 2, 2).astype(dtype) for _ in range(4))

    def normal(x: Any, s: Any, m: Any, v: Any) -> Any:
        x, s, m, v = (np.asarray(each, np.float64) for each in (x, s, m, v))
        return (x - m[:, None]) / np.sqrt(v + 0.5)[:, None] * s[:, None]

    def moments(x: Any) -> tuple[Any, Any]:
        return x.astype(np.float64).mean((0, 2)), x.astype(np.float64).var((0, 2))

    with devscope.compile(NORMALISATIONS.replace("OF", of), default=target, cache=False) as program:
        np.testing.assert_allclose(
            program.run("inference", x, s, o, m, v), normal(x, s, m, v) + o[:, None], near, near
        )
        y, mean, variance = program.run("training", x, s, o)
        np.testing.assert_allclose(y, normal(x, s, *moments(x)) + o[:, None], near, near)
        np.testing.assert_allclose([mean, variance], moments(x), near, near)
        of_x, of_s, of_o = program.run("gradients", x, s, *(each.astype(dtype) for each in moments(x)), g)
    np.testing.assert_allclose(of_o, g.astype(np.float64).sum((0, 2)), near, near)
    np.testing.assert_allclose(
        of_s, (g * normal(x, np.ones(2), *moments(x))).astype(np.float64).sum((0, 2)), near, near
    )
    step = 1e-6
    for place in [(0, 0, 0), (3, 1, 2)]:
        more, less = x.astype(np.float64), x.astype(np.float64)
        more[place] += step
        less[place] -= step
        rise = normal(more, s, *moments(more)) - normal(less, s, *moments(less))
        np.testing.assert_allclose(of_x[place], (rise * g).sum() / (2 * step), max(near, 1e-6), max(near, 1e-6))


CONFIGS = ["ab,cd->bd", "ab,b->", "aab,bc->ac", "...ab,...bc->...ac", "ab->ba", "aa->", "ab->a"]


@pytest.mark.parametrize("config", CONFIGS)
def test_sums_of_products_by_letters(config: str) -> None:
    sizes, rng = {"a": 3, "b": 4, "c": 5, "d": 2}, np.random.default_rng(7)
    operands = [
        rng.standard_normal([sizes.get(letter, 6) for letter in part.replace("...", ".")])
        for part in config.partition("->")[0].split(",")
    ]
    want = np.einsum(config, *operands)
    types = [f"tensor<{''.join(f'{extent}x' for extent in each.shape)}f64>" for each in (*operands, want)]
    given = ", ".join(f"%{n}: {type_}" for n, type_ in enumerate(types[:-1]))
    name = "einsum" if len(operands) == 2 else "unary_einsum"
    text = f"""func.func @main({given}) -> {types[-1]} {{
      %r = "stablehlo.{name}"({", ".join(f"%{n}" for n in range(len(operands)))}) {{einsum_config = "{config}"}}
        : ({", ".join(types[:-1])}) -> {types[-1]}
      return %r : {types[-1]}
    }}"""
    np.testing.assert_allclose(devscope.run(text, *operands, cache=False), want, 1e-12)


def test_a_program_is_one_process() -> None:
    text = """func.func @main(%x: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<ui32>, tensor<3xf32>, tensor<3xf32>) {
      %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<3xf32>) -> tensor<3xf32>
      %1 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
        : (tensor<3xf32>) -> tensor<3xf32>
      %2 = stablehlo.replica_id : tensor<ui32>
      %3 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<0> : tensor<1x2xi64>}>
        : (tensor<3xf32>) -> tensor<3xf32>
      %4 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<> : tensor<0x2xi64>}>
        : (tensor<3xf32>) -> tensor<3xf32>
      return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<ui32>, tensor<3xf32>, tensor<3xf32>
    }"""
    x = np.array([1, -2, 3], np.float32)
    summed, gathered, number, kept, nothing = devscope.run(text, x, cache=False)
    np.testing.assert_array_equal([summed, gathered, kept, nothing], [x, x, x, 0 * x])
    assert number == 0
    with pytest.raises(devscope.DevscopeError, match=r"cannot lower operation 'stablehlo.all_gather'"):
        devscope.compile(text.replace("dense<0> : tensor<1x1xi64>}>\n", "dense<[[0, 1]]> : tensor<1x2xi64>}>\n"))


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("extent", ["12", "?"])
def test_floats_out_of_range_become_the_nearest_integers(extent: str, target: str) -> None:
    """Those that are not numbers become zero, as in XLA."""
    names = {
        "i8": np.int8,
        "ui8": np.uint8,
        "i32": np.int32,
        "ui32": np.uint32,
        "i64": np.int64,
        "ui64": np.uint64,
    }
    numbers = [np.nan, np.inf, -np.inf, -0.0, -0.7, 254.9, -128.9, 1e30, -1e30, 2.0**31, -(2.0**63), 3.7]
    functions = []
    for of in ("f16", "f32", "f64"):
        results = ", ".join(f"tensor<{extent}x{name}>" for name in names)
        lines = [
            f"%{name} = stablehlo.convert %x : (tensor<{extent}x{of}>) -> tensor<{extent}x{name}>"
            for name in names
        ]
        functions.append(
            f"func.func @{of}(%x: tensor<{extent}x{of}>) -> ({results}) {{\n"
            + "\n".join([*lines, f"return {', '.join(f'%{name}' for name in names)} : {results}\n}}"])
        )
    with devscope.compile("\n".join(functions), default=target, cache=False) as program:
        for of, dtype in {"f16": np.float16, "f32": np.float32, "f64": np.float64}.items():
            with np.errstate(over="ignore"):
                x = np.array(numbers, dtype)
            for got, to in zip(program.run(of, x), names.values(), strict=True):
                info = np.iinfo(to)
                exact = [0 if np.isnan(v) else int(v) if np.isfinite(v) else int(np.sign(v)) * 2**64 for v in x]
                want = np.array([min(max(v, int(info.min)), int(info.max)) for v in exact], to)
                np.testing.assert_array_equal(got.view(to), want)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_products_of_unsigned_bytes_are_wide(target: str) -> None:
    text = """func.func @main(%x: tensor<3x5xui8>, %y: tensor<5x4xi8>, %w: tensor<1x1x5xui8>)
        -> (tensor<3x4xi32>, tensor<3x1x1xi64>) {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<3x5xui8>, tensor<5x4xi8>) -> tensor<3x4xi32>
      %1 = stablehlo.reshape %x : (tensor<3x5xui8>) -> tensor<3x1x5xui8>
      %2 = stablehlo.convolution(%1, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<3x1x5xui8>, tensor<1x1x5xui8>) -> tensor<3x1x1xi64>
      return %0, %2 : tensor<3x4xi32>, tensor<3x1x1xi64>
    }"""
    rng = np.random.default_rng(8)
    x, w = (rng.integers(100, 256, extents).astype(np.uint8) for extents in [(3, 5), (1, 1, 5)])
    y = rng.integers(-128, 128, (5, 4)).astype(np.int8)
    product, sums = devscope.run(text, x, y, w, default=target, cache=False)
    np.testing.assert_array_equal(product, x.astype(np.int32) @ y.astype(np.int32))
    np.testing.assert_array_equal(sums[:, 0, 0], x.astype(np.int64) @ w[0, 0])


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_filters_of_channels_by_themselves_are_narrower_than_sums(target: str) -> None:
    """Constants, and others, with channels behind the axes of space."""
    rng = np.random.default_rng(8)
    types = {"i8": ("i32", np.int8), "bf16": ("f32", ml_dtypes.bfloat16)}
    for of, (sum_, type_) in types.items():
        x, w = (rng.integers(-99, 100, extents).astype(type_) for extents in [(2, 6, 8), (3, 1, 8)])
        convolution = f"""dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
            {{batch_group_count = 1 : i64, feature_group_count = 8 : i64}}
            : (tensor<2x6x8x{of}>, tensor<3x1x8x{of}>) -> tensor<2x4x8x{sum_}>"""
        text = f"""func.func @main(%x: tensor<2x6x8x{of}>, %w: tensor<3x1x8x{of}>)
            -> (tensor<2x4x8x{sum_}>, tensor<2x4x8x{sum_}>) {{
          %c = stablehlo.constant dense<"0x{w.tobytes().hex()}"> : tensor<3x1x8x{of}>
          %0 = stablehlo.convolution(%x, %w) {convolution}
          %1 = stablehlo.convolution(%x, %c) {convolution}
          return %0, %1 : tensor<2x4x8x{sum_}>, tensor<2x4x8x{sum_}>
        }}"""
        expected = sum(x[:, k : k + 4].astype(np.float64) * w[k].astype(np.float64) for k in range(3))
        for got in devscope.run(text, x, w, default=target, cache=False):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_filters_with_holes_multiply_nothing_there(target: str) -> None:
    """Holes of what is filtered are zeros, those of filters no elements. Without windows there is no result."""
    windows = {4: "pad = [[0, -1]], ", 5: "", 0: "pad = [[0, -5]], "}
    types = ", ".join(f"tensor<1x2x{count}xf32>" for count in windows)
    lines = [
        f"""%{count} = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
          window = {{{padding}lhs_dilate = [2], rhs_dilate = [2]}}
          {{batch_group_count = 1 : i64, feature_group_count = 2 : i64}}
          : (tensor<1x2x4xf32>, tensor<2x1x2xf32>) -> tensor<1x2x{count}xf32>"""
        for count, padding in windows.items()
    ]
    text = f"func.func @main(%x: tensor<1x2x4xf32>, %w: tensor<2x1x2xf32>) -> ({types}) {{\n" + "\n".join(
        [*lines, f"return {', '.join(f'%{count}' for count in windows)} : {types}\n}}"]
    )
    x = np.array([[[1, np.inf, 3, 4], [np.nan, 6, 7, 8]]], np.float32)
    w = np.array([[[2, 3]], [[-1, 1]]], np.float32)
    expected = np.array([[[np.inf, 0, np.inf, 0, 18], [np.nan, 0, 1, 0, 1]]], np.float32)
    for got in devscope.run(text, x, w, default=target, cache=False):
        np.testing.assert_array_equal(got, expected[..., : got.shape[2]])


def test_there_may_be_no_window() -> None:
    text = """func.func @main(%x: tensor<2x3xui32>, %y: tensor<2x3xf32>) -> (tensor<0x4xui32>, tensor<0x4xf32>) {
      %zero = stablehlo.constant dense<0> : tensor<ui32>
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %0:2 = "stablehlo.reduce_window"(%x, %y, %zero, %none) <{window_dimensions = array<i64: 3, 2>,
          padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<ui32>, %b: tensor<f32>, %c: tensor<ui32>, %d: tensor<f32>):
        %s = stablehlo.add %a, %c : tensor<ui32>
        %m = stablehlo.maximum %b, %d : tensor<f32>
        stablehlo.return %s, %m : tensor<ui32>, tensor<f32>
      }) : (tensor<2x3xui32>, tensor<2x3xf32>, tensor<ui32>, tensor<f32>) -> (tensor<0x4xui32>, tensor<0x4xf32>)
      return %0#0, %0#1 : tensor<0x4xui32>, tensor<0x4xf32>
    }"""
    results = devscope.run(text, np.ones((2, 3), np.uint32), np.ones((2, 3), np.float32), cache=False)
    assert [(r.shape, r.dtype) for r in results] == [((0, 4), np.uint32), ((0, 4), np.float32)]


def test_padding_may_take_all_away() -> None:
    text = """func.func @main(%x: tensor<4x1xf32>, %v: tensor<f32>) -> tensor<4x0xf32> {
      %0 = stablehlo.pad %x, %v, low = [0, -1], high = [0, 0], interior = [0, 0]
        : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x0xf32>
      return %0 : tensor<4x0xf32>
    }"""
    assert devscope.run(text, np.ones((4, 1), np.float32), np.float32(0), cache=False).shape == (4, 0)


@pytest.mark.parametrize("extents", ["40x3", "?x?"])
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_approximate_top_k_is_exact(target: str, extents: str) -> None:
    text = """
    func.func private @less(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
      %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      return %0 : tensor<i1>
    }
    func.func @main(%x: tensor<40x3xf32>, %i: tensor<40x3xi32>) -> (tensor<5x3xf32>, tensor<5x3xi32>) {
      %f = stablehlo.constant dense<0x7F800000> : tensor<f32>
      %n = stablehlo.constant dense<-1> : tensor<i32>
      %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %f, %n) {called_computations = [@less],
          mhlo.backend_config = {aggregate_to_topk = true, recall_target = 0.9 : f32, reduction_dim = 0 : i64,
            reduction_input_size_override = -1 : i64, top_k = 5 : i64}}
        : (tensor<40x3xf32>, tensor<40x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<5x3xf32>, tensor<5x3xi32>)
      return %0#0, %0#1 : tensor<5x3xf32>, tensor<5x3xi32>
    }"""
    text = text.replace("<40x3x", f"<{extents}x").replace("<5x3x", f"<5x{extents.partition('x')[2]}x")
    x = np.random.default_rng(9).standard_normal((40, 3)).astype(np.float32)
    values, places = devscope.run(text, x, np.indices((40, 3), np.int32)[0], default=target, cache=False)
    np.testing.assert_array_equal(places, np.argsort(x, 0)[:5])
    np.testing.assert_array_equal(values, np.sort(x, 0)[:5])


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_indices_of_batches_whose_numbers_come_first(target: str) -> None:
    text = """func.func @main(%x: tensor<5x2x3xi16>, %i: tensor<2x4x2xi64>) -> tensor<4x2xi16> {
      %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [],
        collapsed_slice_dims = [0, 2], operand_batching_dims = [1], start_indices_batching_dims = [2],
        start_index_map = [2, 0], index_vector_dim = 0>, slice_sizes = array<i64: 1, 1, 1>}>
        : (tensor<5x2x3xi16>, tensor<2x4x2xi64>) -> tensor<4x2xi16>
      return %0 : tensor<4x2xi16>
    }"""
    x, i = np.arange(30, dtype=np.int16).reshape(5, 2, 3), np.arange(-4, 12).reshape(2, 4, 2)
    got = devscope.run(text, x, i, default=target, cache=False)
    np.testing.assert_array_equal(got, x[i[1].clip(0, 4), [0, 1], i[0].clip(0, 2)])


@pytest.mark.parametrize(
    ("window", "padding"), [((3, 2), (0, 1)), ((3, 2), (1, 1)), ((2, 3), (0, 1)), ((2, 3), (1, 1))]
)
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_steps_of_short_sums_are_in_the_order_of_xla(target: str, window: Any, padding: Any) -> None:
    """The last column of a window comes last, where it alone is outside, or it has but two."""
    low, high = padding
    rows, columns = 7 - window[0], 6 + low + high - window[1] + 1
    text = f"""func.func @main(%x: tensor<6x6xbf16>) -> tensor<{rows}x{columns}xbf16> {{
      %z = stablehlo.constant dense<0.0> : tensor<bf16>
      %0 = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: {window[0]}, {window[1]}>,
        padding = dense<[[0, 0], [{low}, {high}]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
        %s = stablehlo.add %a, %b : tensor<bf16>
        stablehlo.return %s : tensor<bf16>
      }}) : (tensor<6x6xbf16>, tensor<bf16>) -> tensor<{rows}x{columns}xbf16>
      return %0 : tensor<{rows}x{columns}xbf16>
    }}"""
    x = np.random.default_rng(0).standard_normal((6, 6)).astype(ml_dtypes.bfloat16)
    wide = np.pad(x, [(0, 0), padding])
    want = np.zeros((rows, columns), ml_dtypes.bfloat16)
    is_cut = window[1] == 2 or low == 0
    places = sorted(np.ndindex(window), key=lambda at: (is_cut and at[1] == window[1] - 1, at))
    for row, column in places:
        part = wide[row : row + rows, column : column + columns]
        want = (want.astype(np.float32) + part.astype(np.float32)).astype(ml_dtypes.bfloat16)
    got = devscope.run(text, x, default=target, cache=False)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
