"""torch-mlir's ``tm_tensor`` on the host and on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope

PROGRAM = """
func.func @accumulate(%x: tensor<4x?xf32>, %i: tensor<?x1xi64>, %u: tensor<?x?xf32>) -> tensor<4x?xf32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false)
      ins(%u, %i : tensor<?x?xf32>, tensor<?x1xi64>) outs(%x : tensor<4x?xf32>) {
  ^bb0(%new: f32, %old: f32):
    %twice = arith.addf %old, %old : f32
    %s = arith.addf %twice, %new : f32
    tm_tensor.yield %s : f32
  } -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}
func.func @windows(%x: tensor<4x5xi32>, %i: tensor<2x2xi32>, %u: tensor<2x1x2xi32>) -> tensor<4x5xi32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 1, 0>} unique_indices(true)
      ins(%u, %i : tensor<2x1x2xi32>, tensor<2x2xi32>) outs(%x : tensor<4x5xi32>) {
  ^bb0(%new: i32, %old: i32):
    tm_tensor.yield %new : i32
  } -> tensor<4x5xi32>
  return %0 : tensor<4x5xi32>
}
func.func @ascending(%x: tensor<2x?xf32>, %y: tensor<2x?xi64>) -> (tensor<2x?xf32>, tensor<2x?xi64>) {
  %0:2 = tm_tensor.sort dimension(1) outs(%x, %y : tensor<2x?xf32>, tensor<2x?xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %stays = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<2x?xf32>, tensor<2x?xi64>
  return %0#0, %0#1 : tensor<2x?xf32>, tensor<2x?xi64>
}
func.func @descending(%x: tensor<7xf32>, %y: tensor<7xi64>) -> (tensor<7xf32>, tensor<7xi64>) {
  %0:2 = tm_tensor.sort dimension(0) outs(%x, %y : tensor<7xf32>, tensor<7xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %stays = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<7xf32>, tensor<7xi64>
  return %0#0, %0#1 : tensor<7xf32>, tensor<7xi64>
}
func.func @both(%x: tensor<3x7xi8>, %y: tensor<3x7xi16>) -> (tensor<3x7xi8>, tensor<3x7xi16>) {
  %0:2 = tm_tensor.sort dimension(1) outs(%x, %y : tensor<3x7xi8>, tensor<3x7xi16>) {
  ^bb0(%a: i8, %b: i8, %c: i16, %d: i16):
    %less = arith.cmpi ult, %a, %b : i8
    %same = arith.cmpi eq, %a, %b : i8
    %tie = arith.cmpi sge, %c, %d : i16
    %then = arith.andi %same, %tie : i1
    %stays = arith.ori %less, %then : i1
    tm_tensor.yield %stays : i1
  } -> tensor<3x7xi8>, tensor<3x7xi16>
  return %0#0, %0#1 : tensor<3x7xi8>, tensor<3x7xi16>
}
func.func @smallest(%x: tensor<2x?xf32>, %v: tensor<2x3xf32>, %i: tensor<2x3xi32>)
    -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %0:2 = tm_tensor.topk dimension(1) ins(%x : tensor<2x?xf32>) outs(%v, %i : tensor<2x3xf32>, tensor<2x3xi32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    tm_tensor.yield %c : i1
  } -> tensor<2x3xf32>, tensor<2x3xi32>
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>
}
func.func @largest(%x: tensor<6x2xi16>, %y: tensor<6x2xi32>, %v: tensor<4x2xi16>, %i: tensor<4x2xi32>)
    -> (tensor<4x2xi16>, tensor<4x2xi32>) {
  %0:2 = tm_tensor.topk dimension(0) ins(%x, %y : tensor<6x2xi16>, tensor<6x2xi32>)
      outs(%v, %i : tensor<4x2xi16>, tensor<4x2xi32>) {
  ^bb0(%a: i16, %b: i16):
    %c = arith.cmpi sgt, %a, %b : i16
    tm_tensor.yield %c : i1
  } -> tensor<4x2xi16>, tensor<4x2xi32>
  return %0#0, %0#1 : tensor<4x2xi16>, tensor<4x2xi32>
}
func.func @sums(%x: tensor<3x?xf64>) -> (tensor<3x?xf64>, tensor<3xf64>) {
  %zero = arith.constant dense<7.0> : tensor<3xf64>
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<3x?xf64>)
      outs(%x, %zero : tensor<3x?xf64>, tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64):
    %s = arith.addf %a, %b : f64
    tm_tensor.yield %s : f64
  } -> tensor<3x?xf64>, tensor<3xf64>
  return %0#0, %0#1 : tensor<3x?xf64>, tensor<3xf64>
}
func.func @products(%x: tensor<5x2xi32>, %one: tensor<2xi32>) -> (tensor<5x2xi32>, tensor<2xi32>) {
  %room = tensor.empty() : tensor<5x2xi32>
  %0:2 = tm_tensor.scan dimension(0) inclusive(false) ins(%x : tensor<5x2xi32>)
      outs(%room, %one : tensor<5x2xi32>, tensor<2xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = arith.muli %a, %b : i32
    tm_tensor.yield %s : i32
  } -> tensor<5x2xi32>, tensor<2xi32>
  return %0#0, %0#1 : tensor<5x2xi32>, tensor<2xi32>
}
func.func @columns(%x: tensor<?x?xf32>, %none: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<?x?xf32>)
      outs(%x, %none : tensor<?x?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tm_tensor.yield %s : f32
  } -> tensor<?x?xf32>, tensor<?xf32>
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?xf32>
}
func.func @sees(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %m: tensor<2x?x?xi1>)
    -> tensor<2x?x6xf32> {
  %one = arith.constant 1 : index
  %n = tensor.dim %q, %one : tensor<2x?x8xf32>
  %room = tensor.empty(%n) : tensor<2x?x6xf32>
  %0 = tm_tensor.attention
      ins(%q, %k, %v, %m : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x?x?xi1>)
      outs(%room : tensor<2x?x6xf32>) -> tensor<2x?x6xf32>
  return %0 : tensor<2x?x6xf32>
}
func.func @adds(%q: tensor<2x3x5x4xf16>, %k: tensor<2x3x7x4xf16>, %v: tensor<2x3x7x4xf16>, %m: tensor<2x3x5x7xf16>)
    -> tensor<2x3x5x4xf16> {
  %room = tensor.empty() : tensor<2x3x5x4xf16>
  %0 = tm_tensor.attention {scale = 0.3 : f64}
      ins(%q, %k, %v, %m : tensor<2x3x5x4xf16>, tensor<2x3x7x4xf16>, tensor<2x3x7x4xf16>, tensor<2x3x5x7xf16>)
      outs(%room : tensor<2x3x5x4xf16>) -> tensor<2x3x5x4xf16>
  return %0 : tensor<2x3x5x4xf16>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Any:
    with devscope.compile(PROGRAM, default=request.param, cache=False) as executable:
        yield executable


@pytest.mark.parametrize(("columns", "times"), [(0, 1), (1, 1), (3, 1), (1500, 100)])
def test_scatter_folds_in_order_wraps_and_leaves_out(program: Any, columns: int, times: int) -> None:
    rng = np.random.default_rng(columns)
    x, u = (rng.standard_normal((n, columns)).astype(np.float32) for n in (4, 6 * times))
    x[1:2, :1], u[1:2, :2] = np.nan, -np.inf
    places = rng.permutation([1, -1, 1, 4, -5, 1] * times)
    expected = x.copy()
    for place, update in zip(places, u, strict=True):
        if -4 <= place < 4:
            with np.errstate(over="ignore", invalid="ignore"):
                expected[place] = 2 * expected[place] + update
    got = program.run("accumulate", x, np.array(places)[:, None], u)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_scatter_of_nothing(program: Any) -> None:
    x = np.ones((4, 2), np.float32)
    got = program.run("accumulate", x, np.zeros((0, 1), np.int64), np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(got, x)


def test_windows_begin_at_their_indices(program: Any) -> None:
    x, u = np.zeros((4, 5), np.int32), np.array([[[1, 2]], [[3, 4]]], np.int32)
    expected = x.copy()
    expected[2, 1:3] = [1, 2]
    np.testing.assert_array_equal(program.run("windows", x, np.array([[1, 2], [4, 0]], np.int32), u), expected)


ROW = np.array([2, np.nan, -0.0, 2, 0.0, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_sort_ends_with_what_is_not_a_number(program: Any, length: int) -> None:
    row = ROW[:length]
    order = np.argsort(row, kind="stable")
    values, places = program.run("ascending", np.stack([row, row]), np.tile(np.arange(length), (2, 1)))
    np.testing.assert_array_equal(places, np.tile(order, (2, 1)))
    np.testing.assert_array_equal(values, np.tile(row[order], (2, 1)))


def test_descending_sort_begins_with_it(program: Any) -> None:
    values, places = program.run("descending", ROW, np.arange(7))
    assert places.tolist() == [1, 6, 0, 3, 2, 4, 5]
    np.testing.assert_array_equal(values, ROW[[1, 6, 0, 3, 2, 4, 5]])


def test_sort_by_two_keys(program: Any) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(-2, 2, (3, 7)).astype(np.int8), rng.integers(-9, 9, (3, 7)).astype(np.int16)
    first, second = program.run("both", x, y)
    order = np.lexsort([-y, x.view(np.uint8)])
    np.testing.assert_array_equal(first, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(second, np.take_along_axis(y, order, 1))


def test_smallest_are_first_ones(program: Any) -> None:
    x = np.stack([ROW, np.full(7, np.inf, np.float32)])
    values, places = program.run(
        "smallest", x, np.full((2, 3), np.inf, np.float32), np.full((2, 3), 2**31 - 1, np.int32)
    )
    assert places.tolist() == [[5, 2, 4], [0, 1, 2]]
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


def test_largest_of_what_was_there_and_what_comes(program: Any) -> None:
    x = np.array([[5, 1], [7, 1], [5, 1], [0, 1], [9, 1], [5, 2]], np.int16)
    y = np.array([[10, 60], [20, 50], [30, 40], [40, 30], [50, 20], [60, 10]], np.int32)
    values, places = program.run("largest", x, y, np.full((4, 2), 6, np.int16), np.full((4, 2), 15, np.int32))
    assert values.tolist() == [[9, 6], [7, 6], [6, 6], [6, 6]]
    assert places.tolist() == [[50, 15], [20, 15], [15, 15], [15, 15]]


@pytest.mark.parametrize("length", [0, 1, 6])
def test_inclusive_scan(program: Any, length: int) -> None:
    x = np.random.default_rng(5).standard_normal((3, length))
    sums, last = program.run("sums", x)
    np.testing.assert_allclose(sums, np.cumsum(x, 1), rtol=1e-12)
    np.testing.assert_array_equal(last, sums[:, -1] if length > 1 else np.full(3, 7.0))


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 5), (3, 0), (70, 2700)])
def test_scan_of_columns(program: Any, rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    x[:1, :1] = np.nan
    sums, last = program.run("columns", x, np.full(columns, 7, np.float32))
    np.testing.assert_array_equal(sums, np.cumsum(x, 0))
    np.testing.assert_array_equal(last, sums[-1] if rows > 1 else np.full(columns, 7.0))


def test_exclusive_scan_begins_with_the_accumulator(program: Any) -> None:
    x, one = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]], np.int32), np.array([1, 10], np.int32)
    products, last = program.run("products", x, one)
    expected = np.cumprod(np.vstack([one, x[:-1]]), axis=0)
    np.testing.assert_array_equal(products, expected)
    np.testing.assert_array_equal(last, expected[-1])


def softmax(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        most = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
        powers = np.exp(x - np.where(np.isneginf(most), 0, most))
        sums = powers.sum(-1, keepdims=True)
        return np.where(sums == 0, 0, powers / sums)


@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (5, 40), (1, 1), (3, 0)])
def test_attention_of_what_is_seen(program: Any, rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((2, *s)).astype(np.float32) for s in ((rows, 8), (columns, 8), (columns, 6)))
    mask = rng.random((2, rows, columns)) < 0.7
    mask[:, 0] = False
    scores = np.where(mask, q @ np.swapaxes(k, 1, 2) / np.sqrt(8), -np.inf)
    np.testing.assert_allclose(program.run("sees", q, k, v, mask), softmax(scores) @ v, rtol=1e-5, atol=1e-6)


def test_attention_of_half_floats_with_a_bias(program: Any) -> None:
    rng = np.random.default_rng(6)
    shapes = [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), (2, 3, 5, 7)]
    arrays = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    q, k, v, m = (array.astype(np.float32) for array in arrays)
    expected = softmax(q @ np.swapaxes(k, 2, 3) * 0.3 + m) @ v
    np.testing.assert_allclose(program.run("adds", *arrays), expected, rtol=2e-3, atol=2e-3)
