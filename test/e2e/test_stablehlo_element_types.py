"""Operations of StableHLO that mean something of their own for masks, complex numbers and floats of few bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope

PROGRAM = """
func.func @either(%a: tensor<4xi1>, %b: tensor<4xi1>) -> (tensor<4xi1>, tensor<i1>) {
  %0 = stablehlo.add %a, %b : tensor<4xi1>
  %z = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
  return %0, %1 : tensor<4xi1>, tensor<i1>
}
func.func @extrema(%a: tensor<?xcomplex<f32>>, %b: tensor<?xcomplex<f32>>)
    -> (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) {
  %0 = stablehlo.maximum %a, %b : tensor<?xcomplex<f32>>
  %1 = stablehlo.minimum %a, %b : tensor<?xcomplex<f32>>
  return %0, %1 : tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>
}
func.func @root(%a: tensor<3xcomplex<f64>>) -> tensor<3xcomplex<f64>> {
  %0 = stablehlo.cbrt %a : tensor<3xcomplex<f64>>
  return %0 : tensor<3xcomplex<f64>>
}
func.func @powers(%a: tensor<?xcomplex<f64>>, %b: tensor<?xcomplex<f64>>)
    -> (tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>) {
  %0 = stablehlo.power %a, %b : tensor<?xcomplex<f64>>
  %1 = stablehlo.atan2 %a, %b : tensor<?xcomplex<f64>>
  %2 = stablehlo.cbrt %a : tensor<?xcomplex<f64>>
  return %0, %1, %2 : tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>, tensor<?xcomplex<f64>>
}
func.func @functions(%a: tensor<?xcomplex<f32>>) -> (tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>,
    tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>) {
  %0 = stablehlo.exponential %a : tensor<?xcomplex<f32>>
  %1 = stablehlo.log %a : tensor<?xcomplex<f32>>
  %2 = stablehlo.log_plus_one %a : tensor<?xcomplex<f32>>
  %3 = stablehlo.sqrt %a : tensor<?xcomplex<f32>>
  return %0, %1, %2, %3 : tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>, tensor<?xcomplex<f32>>,
    tensor<?xcomplex<f32>>
}
func.func @more_functions(%a: tensor<6xcomplex<f64>>) -> (tensor<6xcomplex<f64>>, tensor<6xcomplex<f64>>,
    tensor<6xcomplex<f64>>, tensor<6xcomplex<f64>>, tensor<6xf64>) {
  %0 = stablehlo.sign %a : tensor<6xcomplex<f64>>
  %1 = stablehlo.exponential_minus_one %a : tensor<6xcomplex<f64>>
  %2 = stablehlo.tanh %a : tensor<6xcomplex<f64>>
  %3 = stablehlo.tan %a : tensor<6xcomplex<f64>>
  %4 = stablehlo.abs %a : (tensor<6xcomplex<f64>>) -> tensor<6xf64>
  return %0, %1, %2, %3, %4 : tensor<6xcomplex<f64>>, tensor<6xcomplex<f64>>, tensor<6xcomplex<f64>>,
    tensor<6xcomplex<f64>>, tensor<6xf64>
}
func.func @by_constants(%b: tensor<3xcomplex<f64>>)
    -> (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>) {
  %one = stablehlo.constant dense<1.0> : tensor<f64>
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %unit = stablehlo.complex %one, %zero : tensor<complex<f64>>
  %units = stablehlo.broadcast_in_dim %unit, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  %product = stablehlo.multiply %units, %b : tensor<3xcomplex<f64>>
  %quotient = stablehlo.divide %product, %units : tensor<3xcomplex<f64>>
  %power = stablehlo.power %quotient, %units : tensor<3xcomplex<f64>>
  %exponents = stablehlo.constant dense<(-1.0, 0.0)> : tensor<3xcomplex<f64>>
  %inverse = stablehlo.power %b, %exponents : tensor<3xcomplex<f64>>
  %twos = stablehlo.constant dense<(2.0, 0.0)> : tensor<3xcomplex<f64>>
  %square = stablehlo.power %b, %twos : tensor<3xcomplex<f64>>
  %half = stablehlo.divide %b, %twos : tensor<3xcomplex<f64>>
  return %power, %inverse, %square, %half : tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>,
    tensor<3xcomplex<f64>>
}
func.func @recomposed(%a: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>) {
  %0 = stablehlo.custom_call @mhlo.sinh(%a) {mhlo.attributes = {}, mhlo.version = 1 : i64}
    : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1:2 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 2 : i64, largest = true}}
    : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %0, %1#0, %1#1 : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>
}
func.func @split(%a: tensor<3xcomplex<f64>>) -> tensor<3x2xcomplex<f32>> {
  %0 = stablehlo.bitcast_convert %a : (tensor<3xcomplex<f64>>) -> tensor<3x2xcomplex<f32>>
  return %0 : tensor<3x2xcomplex<f32>>
}
func.func @join(%a: tensor<3x2xcomplex<f32>>) -> tensor<3xcomplex<f64>> {
  %0 = stablehlo.bitcast_convert %a : (tensor<3x2xcomplex<f32>>) -> tensor<3xcomplex<f64>>
  return %0 : tensor<3xcomplex<f64>>
}
func.func @product(%a: tensor<3x4xf32>, %b: tensor<4x2xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16,
      rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,
      num_primitive_operations = 3, allow_imprecise_accumulation = false>
      : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
func.func @narrow_products(%a: tensor<1x2xbf16>, %b: tensor<2xbf16>, %c: tensor<2xf16>)
    -> (tensor<1xi32>, tensor<1xf16>, tensor<bf16>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<1x2xbf16>, tensor<2xbf16>) -> tensor<1xi32>
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<1x2xbf16>, tensor<2xbf16>) -> tensor<1xf16>
  %2 = stablehlo.dot_general %c, %c, contracting_dims = [0] x [0] : (tensor<2xf16>, tensor<2xf16>) -> tensor<bf16>
  return %0, %1, %2 : tensor<1xi32>, tensor<1xf16>, tensor<bf16>
}
func.func @eighths(%a: tensor<3x4xf8E5M2>) -> tensor<3x4xf8E5M2> {
  %z = stablehlo.constant dense<0.0> : tensor<f8E5M2>
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 2, 2>,
      padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f8E5M2>, %y: tensor<f8E5M2>):
    %s = stablehlo.add %x, %y : tensor<f8E5M2>
    stablehlo.return %s : tensor<f8E5M2>
  }) : (tensor<3x4xf8E5M2>, tensor<f8E5M2>) -> tensor<3x4xf8E5M2>
  return %0 : tensor<3x4xf8E5M2>
}
func.func @spectrum(%x: tensor<2x0x6xf32>) -> tensor<2x0x4xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<2x0x6xf32>) -> tensor<2x0x4xcomplex<f32>>
  return %0 : tensor<2x0x4xcomplex<f32>>
}
func.func @parts(%a: tensor<3xf32>, %b: tensor<2xi32>) -> (tensor<2xi32>, tensor<3xf32>) {
  %0 = stablehlo.tuple %b : tuple<tensor<2xi32>>
  %1 = stablehlo.tuple %a, %0 : tuple<tensor<3xf32>, tuple<tensor<2xi32>>>
  %2 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<3xf32>, tuple<tensor<2xi32>>>) -> tuple<tensor<2xi32>>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<2xi32>>) -> tensor<2xi32>
  %4 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<3xf32>, tuple<tensor<2xi32>>>) -> tensor<3xf32>
  return %3, %4 : tensor<2xi32>, tensor<3xf32>
}
func.func @nibbles(%a: tensor<?xi16>) -> (tensor<?x4xi4>, tensor<?x8xui2>, tensor<?xi16>, tensor<?x4xi4>) {
  %0 = stablehlo.bitcast_convert %a : (tensor<?xi16>) -> tensor<?x4xi4>
  %1 = stablehlo.bitcast_convert %a : (tensor<?xi16>) -> tensor<?x8xui2>
  %2 = stablehlo.bitcast_convert %0 : (tensor<?x4xi4>) -> tensor<?xi16>
  %3 = stablehlo.bitcast_convert %0 : (tensor<?x4xi4>) -> tensor<?x4x2xi2>
  %4 = stablehlo.bitcast_convert %3 : (tensor<?x4x2xi2>) -> tensor<?x4xi4>
  return %0, %1, %2, %4 : tensor<?x4xi4>, tensor<?x8xui2>, tensor<?xi16>, tensor<?x4xi4>
}
func.func @few_bits() -> (tensor<3xf4E2M1FN>, tensor<2xf6E2M3FN>, tensor<2xf6E3M2FN>) {
  %0 = stablehlo.constant dense<[0.5, -6.0, 3.0]> : tensor<3xf4E2M1FN>
  %1 = stablehlo.constant dense<[7.5, -0.125]> : tensor<2xf6E2M3FN>
  %2 = stablehlo.constant dense<-28.0> : tensor<2xf6E3M2FN>
  return %0, %1, %2 : tensor<3xf4E2M1FN>, tensor<2xf6E2M3FN>, tensor<2xf6E3M2FN>
}
func.func @ends_of_bits(%a: tensor<?xi4>, %b: tensor<?xi4>, %c: tensor<?xui2>, %d: tensor<?xui2>)
    -> (tensor<?xi4>, tensor<?xi4>, tensor<?xi4>, tensor<?xi4>, tensor<?xui2>) {
  %0 = stablehlo.shift_right_logical %a, %b : tensor<?xi4>
  %1 = stablehlo.popcnt %a : tensor<?xi4>
  %2 = stablehlo.count_leading_zeros %a : tensor<?xi4>
  %3 = stablehlo.shift_right_arithmetic %a, %b : tensor<?xi4>
  %4 = stablehlo.shift_right_arithmetic %c, %d : tensor<?xui2>
  return %0, %1, %2, %3, %4 : tensor<?xi4>, tensor<?xi4>, tensor<?xi4>, tensor<?xi4>, tensor<?xui2>
}
func.func @folded(%a: tensor<4xcomplex<f32>>) -> tensor<5xcomplex<f32>> {
  %two = stablehlo.constant dense<(2.0, 0.0)> : tensor<complex<f32>>
  %0 = "stablehlo.reduce_window"(%a, %two) <{window_dimensions = array<i64: 2>,
      padding = dense<1> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<complex<f32>>, %y: tensor<complex<f32>>):
    %m = stablehlo.multiply %x, %y : tensor<complex<f32>>
    stablehlo.return %m : tensor<complex<f32>>
  }) : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5xcomplex<f32>>
  return %0 : tensor<5xcomplex<f32>>
}
func.func @without_dimensions(%a: tensor<f8E5M2>) -> tensor<f8E5M2> {
  %0 = stablehlo.dynamic_slice %a, sizes = [] : (tensor<f8E5M2>) -> tensor<f8E5M2>
  return %0 : tensor<f8E5M2>
}
func.func @quantised(%x: tensor<3x!quant.uniform<u8:f32, 0.25:100>>, %y: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3x!quant.uniform<u8:f32, 0.25:100>>, tensor<3xui8>) {
  %0 = stablehlo.uniform_quantize %y : (tensor<3xf32>) -> tensor<3x!quant.uniform<u8:f32, 0.25:100>>
  %1 = stablehlo.add %x, %0 : tensor<3x!quant.uniform<u8:f32, 0.25:100>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<3x!quant.uniform<u8:f32, 0.25:100>>) -> tensor<3xf32>
  %3 = stablehlo.bitcast_convert %0 : (tensor<3x!quant.uniform<u8:f32, 0.25:100>>) -> tensor<3xui8>
  return %2, %x, %3 : tensor<3xf32>, tensor<3x!quant.uniform<u8:f32, 0.25:100>>, tensor<3xui8>
}
!bytes = tensor<2x?x!quant.uniform<u8:f32:0, {0.5:100, 0.25}>>
func.func @per_axis(%x: tensor<2x?xf32>) -> (tensor<2x?xf32>, !bytes) {
  %0 = stablehlo.uniform_quantize %x : (tensor<2x?xf32>) -> !bytes
  %1 = stablehlo.uniform_dequantize %0 : (!bytes) -> tensor<2x?xf32>
  return %1, %0 : tensor<2x?xf32>, !bytes
}
!given = tensor<1x3x!quant.uniform<i8:f32, 0.5>>
!weights = tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
!made = tensor<1x2x!quant.uniform<i8:f32, 0.5:3>>
func.func @rows_of_weights(%x: !given, %w: !weights) -> !made {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (!given, !weights) -> !made
  return %0 : !made
}
!few = tensor<1x4x!quant.uniform<i8:f32, 0.02:5>>
!square = tensor<4x4x!quant.uniform<i8:f32, 0.03>>
!many = tensor<1x4x!quant.uniform<i32:f32, 0.00060000001>>
func.func @products(%x: !few, %w: !square, %more: !many) -> (!few, !many) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!few, !square) -> !few
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!few, !square) -> !many
  %2 = stablehlo.add %1, %more : !many
  return %0, %2 : !few, !many
}
!half = !quant.uniform<i8:f32, 0.5:3>
func.func @quantised_regions(%x: tensor<2x3x!half>, %zero: tensor<!half>, %turns: tensor<i32>)
    -> (tensor<2x!half>, tensor<2x3x!half>, tensor<2x3x!half>) {
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<2x3x!half>, tensor<!half>) -> tensor<2x!half>
  %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<!half>, %b: tensor<!half>):
    %less = stablehlo.compare LT, %a, %b : (tensor<!half>, tensor<!half>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<2x3x!half>) -> tensor<2x3x!half>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %2:2 = stablehlo.while(%n = %none, %sum = %x) : tensor<i32>, tensor<2x3x!half>
    cond {
      %more = stablehlo.compare LT, %n, %turns : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %next = stablehlo.add %n, %one : tensor<i32>
      %turned = stablehlo.reverse %sum, dims = [0] : tensor<2x3x!half>
      %total = stablehlo.add %turned, %x : tensor<2x3x!half>
      stablehlo.return %next, %total : tensor<i32>, tensor<2x3x!half>
    }
  return %0, %1, %2#1 : tensor<2x!half>, tensor<2x3x!half>, tensor<2x3x!half>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Any:
    with devscope.compile(PROGRAM, default=request.param, cache=False) as executable:
        yield executable


def complexes(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def test_a_sum_of_masks_is_where_one_is(program: Any) -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    both, some = program.run("either", a, b)
    np.testing.assert_array_equal(both, a | b)
    assert some


@pytest.mark.parametrize("size", [0, 1, 7])
def test_complex_numbers_are_ordered_by_real_parts_first(program: Any, size: int) -> None:
    a = np.array([1.5 + 2.5j, 1.5 + 7.5j, 0 + 1.5j, 2j, complex(np.nan, 1), 3, complex(np.inf, -1)], np.complex64)
    b = np.array(
        [7.5 + 1.5j, 1.5 + 2.5j, -0.0 + 2.5j, 2j, 5, complex(1, np.nan), complex(np.inf, 1)], np.complex64
    )
    most, least = program.run("extrema", a[:size], b[:size])
    np.testing.assert_array_equal(most, np.array([b[0], a[1], b[2], 2j, a[4], a[5], b[6]], np.complex64)[:size])
    np.testing.assert_array_equal(least, np.array([a[0], b[1], a[2], 2j, a[4], b[5], a[6]], np.complex64)[:size])


def test_cube_root_of_complex_numbers(program: Any) -> None:
    a = np.array([3 + 4j, -8, 1j])
    np.testing.assert_allclose(program.run("root", a), a ** (1 / 3), rtol=1e-14, atol=1e-15)


def test_powers_and_angles_of_complex_numbers_that_are_infinite_or_not_numbers(program: Any) -> None:
    inf, nan = np.inf, np.nan
    a = np.array([0, 0, 0, complex(inf, 0), complex(inf, 0), 1, complex(nan, 1), complex(inf, inf), 2 + 1j, 1j, 0])
    b = np.array([0, 2, -1, 2, -2, complex(nan, inf), 0, 1, 1 - 1j, complex(-0.0, -1), 1j])
    both = complex(nan, nan)
    powers = [1, 0, both, complex(inf, 0), 0, 1, 1, both, (2 + 1j) ** (1 - 1j), np.exp(np.pi / 2), both]
    y, x = a[8], b[8]
    turn = -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    angles = [both, 0, np.pi, both, both, both, both, both, turn, np.pi * 3 / 4, 0]
    power, angle, root = program.run("powers", a, b)
    np.testing.assert_allclose(power, powers, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(angle, angles, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(root[8], (2 + 1j) ** (1 / 3), rtol=1e-14)


def test_functions_of_chlo_that_are_called(program: Any) -> None:
    a = np.array([[1, 2.5, -3, 2]], np.float32)
    values, largest, places = program.run("recomposed", a)
    np.testing.assert_allclose(values, np.sinh(a), rtol=1e-6)
    np.testing.assert_array_equal(largest, np.array([[2.5, 2]], np.float32))
    np.testing.assert_array_equal(places, np.array([[1, 3]], np.int32))


def test_a_call_that_is_not_as_chlo_has_it() -> None:
    text = """
func.func @main(%a: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.custom_call @mhlo.erf(%a) : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}"""
    with pytest.raises(devscope.DevscopeError, match=r"'stablehlo\.custom_call' cannot be lowered in this form"):
        devscope.compile(text, default="cpu:0", cache=False)


def expect_parts(result: Any, values: Any, **tolerance: float) -> None:
    parts = np.array(values, result.dtype).view(result.real.dtype)
    np.testing.assert_allclose(result.view(result.real.dtype), parts, **tolerance)


def test_functions_of_complex_numbers_that_are_infinite_or_not_numbers(program: Any) -> None:
    """Where C has an infinity or a zero, XLA mostly has nothing that is a number."""
    inf, nan = np.inf, np.nan
    both = complex(nan, nan)
    values = [complex(inf, inf), complex(-inf, nan), complex(nan, inf), complex(-1, 1e-30), 2 + 1j]
    expected = [
        [both, both, both, complex(np.exp(-1), 1e-30 * np.exp(-1)), np.exp(2 + 1j)],
        [complex(inf, np.pi / 4), both, both, complex(0, np.pi), np.log(2 + 1j)],
        [complex(inf, np.pi / 4), both, both, complex(-inf, np.pi / 2), np.log(3 + 1j)],
        [complex(inf, inf), both, both, 1j, np.sqrt(2 + 1j)],
    ]
    for result, known in zip(program.run("functions", np.array(values, np.complex64)), expected, strict=True):
        expect_parts(result, known, rtol=1e-6, atol=1e-29)

    both_inf, nan_inf, known = complex(inf, -inf), complex(nan, inf), 0.5 - 2j
    values = [both_inf, complex(-inf, nan), nan_inf, complex(0, inf), complex(inf, 3), known]
    expected = [
        [both, both, both, complex(0, nan), complex(nan, 0), known / abs(known)],
        [both, both, both, both, complex(-inf, inf), np.expm1(known)],
        [1, -1, both, both, 1, np.tanh(known)],
        [-1j, both, complex(0, 1), 1j, both, np.tan(known)],
        [inf, nan, nan, inf, inf, abs(known)],
    ]
    for result, known in zip(program.run("more_functions", np.array(values)), expected, strict=True):
        expect_parts(result, known, rtol=1e-14)


def test_complex_numbers_by_constants(program: Any) -> None:
    """Products with 1 and the like are left out, as in XLA; quotients are products with the inverse."""
    inf, nan = np.inf, np.nan
    b = np.array([complex(inf, 3), complex(nan, inf), 2 + 1j])
    same, inverse, square, half = program.run("by_constants", b)
    expect_parts(same, b)
    expect_parts(inverse, [0, 0, 0.4 - 0.2j], atol=1e-15)
    expect_parts(square, [complex(inf, inf), complex(nan, nan), 3 + 4j])
    expect_parts(half, [complex(inf, nan), complex(nan, nan), 1 + 0.5j])


def test_bits_of_complex_numbers(program: Any) -> None:
    a = complexes(3)
    narrow = a.view(np.complex64).reshape(3, 2)
    np.testing.assert_array_equal(program.run("split", a), narrow)
    np.testing.assert_array_equal(program.run("join", narrow), a)


def test_bits_of_integers_of_few_bits(program: Any) -> None:
    a = np.array([0x1234, -2, 0x7F80], np.int16)
    parts = [(a.view(np.uint16)[:, None] >> np.arange(0, 16, width)) & (1 << width) - 1 for width in (4, 2)]
    nibbles, pairs, whole, again = program.run("nibbles", a)
    np.testing.assert_array_equal(nibbles.astype(np.int8) & 15, parts[0])
    np.testing.assert_array_equal(pairs.astype(np.uint8), parts[1])
    np.testing.assert_array_equal(whole, a)
    np.testing.assert_array_equal(again, nibbles)


def test_products_with_an_algorithm(program: Any) -> None:
    a, b = (complexes(*shape).real.astype(np.float32) for shape in ((3, 4), (4, 2)))
    np.testing.assert_allclose(program.run("product", a, b), a @ b, rtol=1e-5, atol=1e-6)


def test_spectra_of_nothing(program: Any) -> None:
    assert program.run("spectrum", np.ones((2, 0, 6), np.float32)).shape == (2, 0, 4)


def test_parts_of_tuples(program: Any) -> None:
    a, b = np.arange(3, dtype=np.float32), np.array([7, 8], np.int32)
    got = program.run("parts", a, b)
    np.testing.assert_array_equal(got[0], b)
    np.testing.assert_array_equal(got[1], a)


def test_constants_of_few_bits(program: Any) -> None:
    kinds = (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)
    wanted = ([0.5, -6, 3], [7.5, -0.125], [-28, -28])
    for got, kind, numbers in zip(program.run("few_bits"), kinds, wanted, strict=True):
        assert np.asarray(got).view(kind).astype(float).tolist() == numbers


def test_where_integers_of_few_bits_end(program: Any) -> None:
    a = np.array([-5, -7, -1, 1, 0, 7], np.int8).astype(ml_dtypes.int4)
    b = np.array([1, 2, 3, 0, 2, -1], np.int8).astype(ml_dtypes.int4)
    c, d = np.array([1, 2, 3, 3], ml_dtypes.uint2), np.array([0, 1, 0, 3], ml_dtypes.uint2)
    *results, moved = (each.astype(np.int8) for each in program.run("ends_of_bits", a, b, c, d))
    shifted, ones, zeros, with_sign = results
    np.testing.assert_array_equal(with_sign, [-3, -2, -1, 1, 0, 0])
    np.testing.assert_array_equal(moved, [1, 3, 3, 3])
    np.testing.assert_array_equal(shifted, [5, 2, 1, 1, 0, 0])
    np.testing.assert_array_equal(ones, [3, 2, 4, 1, 0, 3])
    np.testing.assert_array_equal(zeros, [0, 0, 0, 3, 4, 1])


def test_products_of_windows_that_begin_with_a_number(program: Any) -> None:
    a = complexes(4).astype(np.complex64)
    beyond = np.array([1, *a, 1])
    np.testing.assert_allclose(program.run("folded", a), 2 * beyond[:-1] * beyond[1:], rtol=1e-5)


def test_a_slice_without_dimensions(program: Any) -> None:
    assert program.run("without_dimensions", np.array(3, ml_dtypes.float8_e5m2)) == 3


def test_quantised_numbers_without_sign(program: Any) -> None:
    x, y = np.array([0, 104, 200], np.uint8), np.array([-50, 20.1, 38.75], np.float32)
    total, same, stored = program.run("quantised", x, y)
    np.testing.assert_array_equal(total, np.array([-25, 21, 38.75], np.float32))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(stored, np.array([0, 180, 255], np.uint8))


def test_quantised_products(program: Any) -> None:
    """They are rounded once, and end where the storage does; in 32 bits they are exact."""
    rng = np.random.default_rng(6)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 4), (4, 4)))
    exact = (x.astype(np.int32) - 5) @ w
    few, many = program.run("products", x, w, np.arange(4, dtype=np.int32).reshape(1, 4))
    np.testing.assert_array_equal(few, np.clip(np.round(exact * 0.03) + 5, -128, 127))
    np.testing.assert_array_equal(many, exact + np.arange(4))


def test_quantised_numbers_in_regions(program: Any) -> None:
    x = np.array([[5, 1, 3], [7, 3, -120]], np.int8)
    sums, ordered, turned = program.run("quantised_regions", x, np.array(3, np.int8), np.array(1, np.int32))
    np.testing.assert_array_equal(sums, np.array([3, -116], np.int8))
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(turned, np.array([[9, 1, -120], [9, 1, -120]], np.int8))


def test_scales_along_a_dimension_that_is_not_the_last(program: Any) -> None:
    x = np.array([[0.3, -70, 90], [0.3, -70, 90]], np.float32)
    real, stored = program.run("per_axis", x)
    np.testing.assert_array_equal(stored, np.array([[101, 0, 255], [1, 0, 255]], np.uint8))
    np.testing.assert_array_equal(real, np.array([[0.5, -50, 77.5], [0.25, 0, 63.75]], np.float32))
    result = program.run(
        "rows_of_weights", np.array([[1, 2, 3]], np.int8), np.array([[4, 5, 6], [-4, 51, 6]], np.int8)
    )
    np.testing.assert_array_equal(result, np.array([[19, 32]], np.int8))


def test_products_are_rounded_to_types_that_hold_less_than_their_operands(program: Any) -> None:
    a, c = np.array([2.5, 0.75]), np.array([1.5, 2.25])
    narrow = a.astype(ml_dtypes.bfloat16)
    whole, half, brain = program.run("narrow_products", narrow[None], narrow, c.astype(np.float16))
    assert [whole[0], half[0], float(brain)] == [6, a @ a, float((c @ c).astype(ml_dtypes.bfloat16))]


def test_steps_of_sums_over_windows_of_small_floats_are_in_the_order_of_xla(program: Any) -> None:
    a = np.array([[5, 12, 4, 7], [10, 8, 2, 1], [12, 12, 12, 8]])
    want = [[32, 24, 12, 8], [48, 32, 24, 8], [24, 24, 20, 8]]  # row by row, three would be 16, 40, 8
    found = program.run("eighths", a.astype(ml_dtypes.float8_e5m2))
    np.testing.assert_array_equal(found.astype(np.float32), want)
