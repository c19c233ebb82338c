"""StableHLO of extents that are known as the program runs, on the host and on a device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope

PROGRAM = """
func.func @update(%x: tensor<?x4xf32>, %u: tensor<?x2xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<?x4xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j
    : (tensor<?x4xf32>, tensor<?x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
func.func @fft(%x: tensor<?x3x?x6xf32>) -> tensor<?x3x?x4xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<?x3x?x6xf32>) -> tensor<?x3x?x4xcomplex<f32>>
  return %0 : tensor<?x3x?x4xcomplex<f32>>
}
func.func @pool(%x: tensor<?x6xf32>) -> tensor<?x3xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %least) <{window_dimensions = array<i64: 1, 3>,
      window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
func.func @total_order(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xi1> {
  %0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xi1>
  return %0 : tensor<?x?xi1>
}
func.func @best_of_two(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>)
    -> (tensor<f32>, tensor<i32>) {
  %0 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = stablehlo.select %0, %a, %b : tensor<i1>, tensor<f32>
  %2 = stablehlo.select %0, %i, %j : tensor<i1>, tensor<i32>
  return %1, %2 : tensor<f32>, tensor<i32>
}
func.func @windows(%x: tensor<?x3xf32>, %i: tensor<?x3xi32>, %extents: tensor<2xi32>, %strides: tensor<2xi32>,
                   %base: tensor<2xi32>, %dilation: tensor<2xi32>, %padding: tensor<2x2xi32>)
    -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %least, %none, %extents, %strides, %base,
      %dilation, %padding) {called_computations = [@best_of_two]}
    : (tensor<?x3xf32>, tensor<?x3xi32>, tensor<f32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>,
       tensor<2xi32>, tensor<2x2xi32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}
func.func @bounded(%x: tensor<?x3xui8>, %n: tensor<i32>)
    -> (tensor<?x3xui8, #stablehlo.bounds<5, ?>>, tensor<3xui8>, tensor<i32>) {
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0
    : (tensor<?x3xui8>, tensor<i32>) -> tensor<?x3xui8, #stablehlo.bounds<5, ?>>
  %zero = stablehlo.constant dense<0> : tensor<ui8>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x3xui8, #stablehlo.bounds<5, ?>>, tensor<ui8>) -> tensor<3xui8>
  %2 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x3xui8, #stablehlo.bounds<5, ?>>) -> tensor<i32>
  return %0, %1, %2 : tensor<?x3xui8, #stablehlo.bounds<5, ?>>, tensor<3xui8>, tensor<i32>
}
func.func @pad(%x: tensor<?x?xf32>, %v: tensor<f32>, %low: tensor<2xi32>, %high: tensor<2xi32>,
               %holes: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_pad %x, %v, %low, %high, %holes
    : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @grouped(%x: tensor<?x?x?x4xui8>, %w: tensor<6x3x?x2xui8>, %padding: tensor<2x2xi32>)
    -> tensor<?x6x?x?xui8> {
  %0 = "stablehlo.dynamic_conv"(%x, %w, %padding) {
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[o, 0, 1, i]->[b, f, 0, 1]>, feature_group_count = 2 : i64,
    batch_group_count = 1 : i64, window_strides = array<i64: 2, 1>, lhs_dilation = array<i64: 1, 2>,
    rhs_dilation = array<i64: 2, 1>, window_reversal = array<i1: true, false>
  } : (tensor<?x?x?x4xui8>, tensor<6x3x?x2xui8>, tensor<2x2xi32>) -> tensor<?x6x?x?xui8>
  return %0 : tensor<?x6x?x?xui8>
}
func.func @of_batches(%x: tensor<?x3x?xf32>, %w: tensor<?x3x?xf32>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 0]]}
    {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
    : (tensor<?x3x?xf32>, tensor<?x3x?xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}
func.func @one_batch(%x: tensor<?x?x?xf32>, %w: tensor<2x1x3xf32>) -> tensor<1x2x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 0]]}
    {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
    : (tensor<?x?x?xf32>, tensor<2x1x3xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}
func.func @many_images(%x: tensor<?x3x5x6xf32>, %w: tensor<4x3x2x3xf32>) -> tensor<?x4x3x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [1, 2], rhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x3x5x6xf32>, tensor<4x3x2x3xf32>) -> tensor<?x4x3x2xf32>
  return %0 : tensor<?x4x3x2xf32>
}
func.func @cut_images(%x: tensor<?x5x6x3xf32>, %w: tensor<2x3x3x4xf32>) -> tensor<?x2x2x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 2], pad = [[-1, 0], [0, 0]], rhs_dilate = [2, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x5x6x3xf32>, tensor<2x3x3x4xf32>) -> tensor<?x2x2x4xf32>
  return %0 : tensor<?x2x2x4xf32>
}
func.func @window_sums(%x: tensor<?x4x6xi32>) -> tensor<?x3x5xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 2, 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<?x4x6xi32>, tensor<i32>) -> tensor<?x3x5xi32>
  return %0 : tensor<?x3x5xi32>
}
func.func @fewer_digits(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.reduce_precision %x, format = e8m7 : tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @unlike(%x: tensor<?x2xf32>, %y: tensor<3x?xf32>)
    -> (tensor<?x?xi8>, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<?x2xf32>) {
  %0 = stablehlo.convert %x : (tensor<?x2xf32>) -> tensor<?x?xi8>
  %1 = stablehlo.convert %x : (tensor<?x2xf32>) -> tensor<?x?xf8E4M3FN>
  %2 = stablehlo.add %x, %y : (tensor<?x2xf32>, tensor<3x?xf32>) -> tensor<?x?xf32>
  %3:2 = chlo.top_k(%y, k = 2) : tensor<3x?xf32> -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %0, %1, %2, %3#0 : tensor<?x?xi8>, tensor<?x?xf8E4M3FN>, tensor<?x?xf32>, tensor<?x2xf32>
}
func.func @unlike_matrices(%a: tensor<?x2xf32>, %b: tensor<?x?xf32>)
    -> (tensor<?x?xf32>, tensor<?x3xf32>, tensor<?x?xf32>) {
  %0 = "stablehlo.cholesky"(%a) <{lower = true}> : (tensor<?x2xf32>) -> tensor<?x?xf32>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x3xf32>
  %2 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
    : (tensor<?x2xf32>) -> tensor<?x?xf32>
  return %0, %1, %2 : tensor<?x?xf32>, tensor<?x3xf32>, tensor<?x?xf32>
}
func.func @features(%x: tensor<?x?xf32>, %s: tensor<?xf32>, %o: tensor<?xf32>)
    -> (tensor<?x2xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 0.5 : f32, feature_index = 1 : i64}>
    : (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) -> (tensor<?x2xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?xf32>
}
func.func @letters(%x: tensor<?x3xi32>, %y: tensor<?x?x2xi32>) -> tensor<?x?xi32> {
  %0 = "stablehlo.einsum"(%x, %y) <{einsum_config = "ab,bcd->ca"}>
    : (tensor<?x3xi32>, tensor<?x?x2xi32>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}
func.func @bits(%x: tensor<?x?xi16>) -> (tensor<?xf32>, tensor<?x2x?xui8>) {
  %0 = stablehlo.bitcast_convert %x : (tensor<?x?xi16>) -> tensor<?xf32>
  %1 = stablehlo.bitcast_convert %x : (tensor<?x?xi16>) -> tensor<?x2x?xui8>
  return %0, %1 : tensor<?xf32>, tensor<?x2x?xui8>
}
func.func @cut_and_padded(%x: tensor<?x2xi32>, %v: tensor<i32>)
    -> (tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x7xi32>) {
  %0 = stablehlo.slice %x [1:3, 2:2:2] : (tensor<?x2xi32>) -> tensor<?x?xi32>
  %1 = stablehlo.pad %x, %v, low = [-1, 1], high = [2, -2], interior = [1, 3]
    : (tensor<?x2xi32>, tensor<i32>) -> tensor<?x?xi32>
  %2 = stablehlo.pad %x, %v, low = [1, 0], high = [0, 2], interior = [1, 3]
    : (tensor<?x2xi32>, tensor<i32>) -> tensor<?x7xi32>
  return %0, %1, %2 : tensor<?x?xi32>, tensor<?x?xi32>, tensor<?x7xi32>
}
"""

# Each alone in a module: nothing else makes the compiler look again at what an expansion made.
SPECTRUM = """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x4xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<?x6xf32>) -> tensor<?x4xcomplex<f32>>
  return %0 : tensor<?x4xcomplex<f32>>
}
"""
SPREAD = """
func.func @main(%x: tensor<5x?x1xf32>, %w: tensor<2x1x1xf32>) -> tensor<5x?x1xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]],
    lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<5x?x1xf32>, tensor<2x1x1xf32>) -> tensor<5x?x1xf32>
  return %0 : tensor<5x?x1xf32>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Any:
    with devscope.compile(PROGRAM, default=request.param, cache=False) as executable:
        yield executable


@pytest.mark.parametrize(("at", "row", "column"), [((1, 1), 1, 1), ((9, 9), 3, 2), ((-4, -1), 0, 0)])
def test_updates_begin_inside(program: Any, at: tuple[int, int], row: int, column: int) -> None:
    x, u = np.zeros((5, 4), np.float32), np.ones((2, 2), np.float32)
    expected = x.copy()
    expected[row : row + 2, column : column + 2] = 1
    np.testing.assert_array_equal(program.run("update", x, u, *map(np.int32, at)), expected)


@pytest.mark.parametrize("batch", [(2, 5), (0, 5)])
def test_fft_of_a_batch(program: Any, batch: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal((batch[0], 3, batch[1], 6)).astype(np.float32)
    np.testing.assert_allclose(program.run("fft", x), np.fft.rfft(x), atol=1e-5)


def test_padded_windows_of_a_batch(program: Any) -> None:
    x = np.array([[1, 5, 2, 7, 0, 3], [-1, -2, -3, -4, -5, -6]], np.float32)
    np.testing.assert_array_equal(program.run("pool", x), [[5, 7, 3], [-1, -3, -5]])


@pytest.mark.parametrize(
    ("extents", "strides", "base", "dilation", "padding"),
    [
        ((2, 2), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
        ((2, 3), (2, 1), (2, 1), (2, 1), ((1, 2), (2, 0))),
        ((1, 2), (3, 2), (1, 3), (1, 2), ((-1, 0), (0, -1))),
        ((9, 1), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
    ],
)
def test_windows_of_two_arrays(
    program: Any, extents: Any, strides: Any, base: Any, dilation: Any, padding: Any
) -> None:
    rng = np.random.default_rng(1)
    x, i = rng.standard_normal((5, 3)).astype(np.float32), np.arange(15, dtype=np.int32).reshape(5, 3)
    wide = [(size - 1) * by + 1 for size, by in zip(x.shape, base, strict=True)]
    held: dict[tuple[int, int], tuple[Any, Any]] = {}
    for (row, column), value in np.ndenumerate(x):
        held[row * base[0] + padding[0][0], column * base[1] + padding[1][0]] = value, i[row, column]
    counts = [
        max(0, (size + sum(pad) - (window - 1) * by - 1) // stride + 1)
        for size, pad, window, by, stride in zip(wide, padding, extents, dilation, strides, strict=True)
    ]
    largest, place = np.full(counts, -np.inf, np.float32), np.full(counts, -1, np.int32)
    for row, column in np.ndindex(*counts):
        reached = [
            held[at]
            for n in np.ndindex(*extents)
            if (at := (row * strides[0] + n[0] * dilation[0], column * strides[1] + n[1] * dilation[1])) in held
        ]
        if reached:
            largest[row, column], place[row, column] = max(reached)
    given = [np.array(value, np.int32) for value in (extents, strides, base, dilation, padding)]
    found = program.run("windows", x, i, *given)
    np.testing.assert_array_equal(found[0], largest)
    np.testing.assert_array_equal(found[1], place)


def test_total_order(program: Any) -> None:
    """-NaN < -inf < -1 < -0 < 0 < 1 < inf < NaN."""
    ordered = np.array([-np.nan, -np.inf, -1, -0.0, 0, 1, np.inf, np.nan], np.float32)
    ordered[0] = -np.abs(ordered[0])
    first, second = np.meshgrid(ordered, ordered, indexing="ij")
    places = np.arange(len(ordered))
    np.testing.assert_array_equal(program.run("total_order", first, second), places[:, None] < places)


@pytest.mark.parametrize(
    ("low", "high", "holes", "shape"),
    [((1, 0), (2, 3), (0, 2), (3, 4)), ((-1, 2), (0, -3), (1, 0), (4, 5)), ((2, 1), (0, 1), (3, 1), (0, 2))],
)
def test_padding_that_is_a_value(program: Any, low: Any, high: Any, holes: Any, shape: Any) -> None:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    expected = _padded(x, (*zip(low, high, strict=True),), tuple(n + 1 for n in holes), 7)
    given = [np.array(value, np.int32) for value in (low, high, holes)]
    np.testing.assert_array_equal(program.run("pad", x, np.float32(7), *given), expected)


@pytest.mark.parametrize("asked", [-1, 0, 3, 5, 9])
def test_sizes_that_are_set_have_a_bound(program: Any, asked: int) -> None:
    x = np.arange(15, dtype=np.uint8).reshape(5, 3)
    kept, total, size = program.run("bounded", x, np.int32(asked))
    want = x[: max(asked, 0)]
    assert size == len(want)
    np.testing.assert_array_equal(kept, want)
    np.testing.assert_array_equal(total, want.sum(0, dtype=np.uint8))


def test_bounds_alone() -> None:
    type_ = "tensor<?x2xf32, #stablehlo.bounds<5, ?>>"
    x = np.ones((3, 2), np.float32)
    text = f"func.func @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}"
    np.testing.assert_array_equal(devscope.run(text, x, cache=False), x)


@pytest.mark.parametrize(
    ("size", "padding"), [((9, 4), ((0, 0), (1, 2))), ((7, 5), ((2, 1), (-1, 0))), ((2, 3), ((0, 0), (0, 0)))]
)
def test_convolutions_of_images_of_any_size(program: Any, size: Any, padding: Any) -> None:
    """In two groups, of windows that are turned along the first axis, of unsigned numbers, which wrap."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 256, (2, *size, 4), np.uint8)
    w = rng.integers(0, 256, (6, 3, 2, 2), np.uint8)
    wide = _padded(x.astype(np.int64), ((0, 0), *padding, (0, 0)), (1, 1, 2, 1), 0)
    filters = w[:, ::-1].astype(np.int64)
    groups = [
        _convolved(wide[..., 2 * g : 2 * g + 2], filters[3 * g : 3 * g + 3], (2, 1), (2, 1)) for g in range(2)
    ]
    expected = np.concatenate(groups, axis=1).astype(np.uint8)
    np.testing.assert_array_equal(program.run("grouped", x, w, np.array(padding, np.int32)), expected)


def test_convolutions_of_groups_of_a_batch(program: Any) -> None:
    rng = np.random.default_rng(4)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 3, 8), (4, 3, 3)))
    wide, filters = np.pad(x, ((0, 0), (0, 0), (1, 0))), np.swapaxes(w, 1, 2)[:, None]
    images = np.swapaxes(wide, 1, 2)[:, None]
    parts = [_convolved(images[3 * g : 3 * g + 3], filters[2 * g : 2 * g + 2], (1, 1), (1, 1)) for g in range(2)]
    found = program.run("of_batches", x, w)
    np.testing.assert_allclose(found, np.concatenate(parts, axis=1)[:, :, 0], rtol=1e-5, atol=1e-5)


def test_convolutions_whose_result_knows_more(program: Any) -> None:
    """On a device zeros and sums are one kernel, whose loops over one element only the zeros know."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 1, 5), (2, 1, 3)))
    expected = [np.correlate(np.pad(x[n, 0], (1, 0)), w[n, 0]) for n in range(2)]
    np.testing.assert_allclose(program.run("one_batch", x, w), [expected], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_convolutions_of_any_number_of_images(program: Any, batch: int) -> None:
    """Features in front of the axes of space; and behind them, of images from which elements are cut."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((batch, 3, 5, 6), (4, 3, 2, 3)))
    expected = _convolved(np.moveaxis(x, 1, 3), np.moveaxis(w, 1, 3), (1, 2), (2, 1))
    np.testing.assert_allclose(program.run("many_images", x, w), expected, rtol=1e-5, atol=1e-5)
    x, w = np.moveaxis(x, 1, 3), np.moveaxis(w, 1, 3)
    expected = np.moveaxis(_convolved(x[:, 1:], w, (1, 2), (2, 1)), 1, 3)
    cut = program.run("cut_images", np.ascontiguousarray(x), np.ascontiguousarray(np.moveaxis(w, 0, 3)))
    np.testing.assert_allclose(cut, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_windows_of_any_number_of_images(program: Any, batch: int) -> None:
    x = np.random.default_rng(6).integers(-9, 9, (batch, 4, 6)).astype(np.int32)
    sums = x[:, :-1, :-1] + x[:, 1:, :-1] + x[:, :-1, 1:] + x[:, 1:, 1:]
    np.testing.assert_array_equal(program.run("window_sums", x), sums)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_fewer_digits_of_any_number_of_numbers(program: Any, rows: int) -> None:
    x = np.array([[1.1, np.nan], [np.inf, -3.14159], [-0.0, 3e38]], np.float32)[:rows]
    np.testing.assert_array_equal(program.run("fewer_digits", x), x.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_expansions_that_stand_alone() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    spectrum = devscope.compile(SPECTRUM, cache=False)(x)
    np.testing.assert_allclose(spectrum, np.fft.rfft(x), atol=1e-5)
    y, w = np.arange(15, dtype=np.float32).reshape(5, 3, 1), np.array([2, 3], np.float32).reshape(2, 1, 1)
    expected = np.stack([np.convolve([row[0], 0, row[1], 0, row[2]], [3, 2]) for row in y[..., 0]])
    np.testing.assert_allclose(devscope.compile(SPREAD, cache=False)(y, w)[..., 0], expected)


def test_types_that_know_different_extents(program: Any) -> None:
    x = np.array([[1.5, -300], [np.nan, 7], [0.3, 448]], np.float32)
    whole, small, total, best = program.run("unlike", x, x)
    np.testing.assert_array_equal(best, np.array([[1.5, -300], [np.nan, 7], [448, 0.3]], np.float32))
    np.testing.assert_array_equal(whole, np.array([[1, -128], [0, 7], [0, 127]], np.int8))
    np.testing.assert_array_equal(small.astype(np.float32), x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32))
    np.testing.assert_array_equal(total, x + x)


def test_matrices_whose_types_know_different_extents(program: Any) -> None:
    a, b = np.array([[4, 2], [2, 5]], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    factor, solved, given = program.run("unlike_matrices", a, b)
    np.testing.assert_allclose(factor, [[2, 0], [1, 2]], 1e-6)
    np.testing.assert_allclose(factor @ solved, b, 1e-6)
    np.testing.assert_array_equal(given, a)


def test_features_of_any_number(program: Any) -> None:
    x, s, o = np.array([[1, 2], [3, 8], [5, 2]], np.float32), np.array([1, 2], np.float32), np.ones(2, np.float32)
    y, mean = program.run("features", x, s, o)
    np.testing.assert_allclose(mean, x.mean(0), 1e-6)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(x.var(0) + 0.5) * s + o, 1e-5)


def test_integers_by_letters(program: Any) -> None:
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(24, dtype=np.int32).reshape(3, 4, 2)
    np.testing.assert_array_equal(program.run("letters", x, y), np.einsum("ab,bcd->ca", x, y))


def test_bits_of_dynamic_extents(program: Any) -> None:
    x = np.array([[0x1234, 0x4049], [-1, 0x3F80], [7, -0x7F80]], np.int16)
    whole, parts = program.run("bits", x)
    np.testing.assert_array_equal(whole.view(np.int32), x.view(np.int32)[:, 0])
    np.testing.assert_array_equal(parts, x.view(np.uint8).reshape(3, 2, 2))


def test_slices_and_padding_that_a_program_says(program: Any) -> None:
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    nothing, padded, spread = program.run("cut_and_padded", x, np.int32(9))
    assert nothing.shape == (2, 0)
    want = np.full((6, 4), 9)
    want[1::2, 1][:2] = x[1:, 0]
    np.testing.assert_array_equal(padded, want)
    want = np.full((6, 7), 9)
    want[1::2, :5:4] = x
    np.testing.assert_array_equal(spread, want)


def _padded(x: Any, padding: Any, dilations: Any, value: Any) -> Any:
    """Amounts that are negative cut off."""
    made = np.full([max((n - 1) * by + 1, 0) for n, by in zip(x.shape, dilations, strict=True)], value, x.dtype)
    made[tuple(slice(None, None, by) for by in dilations)] = x
    made = np.pad(made, [(max(a, 0), max(b, 0)) for a, b in padding], constant_values=value)
    return made[tuple(slice(max(-a, 0), made.shape[axis] - max(-b, 0)) for axis, (a, b) in enumerate(padding))]


def _convolved(x: Any, w: Any, strides: Any, dilations: Any) -> Any:
    """``[batch, height, width, features]`` and ``[filters, height, width, features]``."""
    counts = [
        max(0, (size - (window - 1) * by - 1) // stride + 1)
        for size, window, by, stride in zip(x.shape[1:3], w.shape[1:3], dilations, strides, strict=True)
    ]
    result = np.zeros((len(x), len(w), *counts), x.dtype)
    for row, column in np.ndindex(*counts):
        for i, j in np.ndindex(*w.shape[1:3]):
            pixel = x[:, row * strides[0] + i * dilations[0], column * strides[1] + j * dilations[1]]
            result[:, :, row, column] += pixel @ w[:, i, j].T
    return result
