"""Forms of StableHLO that JAX does not write: control flow in bodies, tokens in loops, sizes without sign."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError

PROGRAM = """
func.func @choices(%x: tensor<3x4xf32>, %n: tensor<i32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %start = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.map"(%x) ({
  ^bb0(%a: tensor<f32>):
    %p = stablehlo.compare LT, %a, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %c = "stablehlo.if"(%p) ({
      %q = stablehlo.negate %a : tensor<f32>
      stablehlo.return %q : tensor<f32>
    }, {
      stablehlo.return %a : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    %i, %r = stablehlo.while(%i = %start, %s = %c) : tensor<i32>, tensor<f32>
      cond {
        %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %t = stablehlo.add %s, %s : tensor<f32>
        stablehlo.return %j, %t : tensor<i32>, tensor<f32>
      }
    stablehlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %k = stablehlo.iota dim = 1 : tensor<3x4xi32>
  %1:2 = "stablehlo.reduce"(%x, %k, %zero, %start) ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m:2 = "stablehlo.if"(%g) ({
      stablehlo.return %a, %i : tensor<f32>, tensor<i32>
    }, {
      stablehlo.return %b, %j : tensor<f32>, tensor<i32>
    }) : (tensor<i1>) -> (tensor<f32>, tensor<i32>)
    stablehlo.return %m#0, %m#1 : tensor<f32>, tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>)
    -> (tensor<3xf32>, tensor<3xi32>)
  return %0, %1#0, %1#1 : tensor<3x4xf32>, tensor<3xf32>, tensor<3xi32>
}
func.func @tokens(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %token = stablehlo.create_token : !stablehlo.token
  %start = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i, %r, %last = stablehlo.while(%i = %start, %s = %x, %t = %token)
      : tensor<i32>, tensor<3xf32>, !stablehlo.token
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %s, %s : tensor<3xf32>
      %u = stablehlo.after_all %t, %token : !stablehlo.token
      stablehlo.return %j, %b, %u : tensor<i32>, tensor<3xf32>, !stablehlo.token
    }
  %0:2 = stablehlo.optimization_barrier %r, %last : tensor<3xf32>, !stablehlo.token
  return %0#0 : tensor<3xf32>
}
func.func @sizes(%x: tensor<?xf32>, %v: tensor<f32>, %n: tensor<1xui8>)
    -> (tensor<?x?xf32>, tensor<?xf32>, tensor<1xf32>) {
  %two = stablehlo.constant dense<2> : tensor<1xui8>
  %s = stablehlo.concatenate %two, %n, dim = 0 : (tensor<1xui8>, tensor<1xui8>) -> tensor<2xui8>
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xui8>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_pad %x, %v, %n, %two, %n
    : (tensor<?xf32>, tensor<f32>, tensor<1xui8>, tensor<1xui8>, tensor<1xui8>) -> tensor<?xf32>
  %2 = "stablehlo.torch_index_select"(%x, %n) {dim = 0 : i64, batch_dims = 0 : i64}
    : (tensor<?xf32>, tensor<1xui8>) -> tensor<1xf32>
  return %0, %1, %2 : tensor<?x?xf32>, tensor<?xf32>, tensor<1xf32>
}
func.func @places(%x: tensor<4xi32>, %n: tensor<ui64>) -> (tensor<2xi32>, tensor<4xi32>, tensor<1xi32>) {
  %0 = stablehlo.dynamic_slice %x, %n, sizes = [2] : (tensor<4xi32>, tensor<ui64>) -> tensor<2xi32>
  %1 = stablehlo.dynamic_update_slice %x, %0, %n : (tensor<4xi32>, tensor<2xi32>, tensor<ui64>) -> tensor<4xi32>
  %2 = "stablehlo.gather"(%x, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0],
    index_vector_dim = 0>, slice_sizes = array<i64: 1>}> : (tensor<4xi32>, tensor<ui64>) -> tensor<1xi32>
  return %0, %1, %2 : tensor<2xi32>, tensor<4xi32>, tensor<1xi32>
}
func.func @bits(%s: tensor<2xui64>) -> tensor<5xbf16> {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xbf16>)
  return %1 : tensor<5xbf16>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Any:
    return devscope.compile(PROGRAM, default=request.param)


def test_bodies_have_choices_and_loops(program: Any) -> None:
    x = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
    scaled, largest, where = program.run("choices", x, np.int32(3))
    np.testing.assert_array_equal(scaled, abs(x) * 8)
    np.testing.assert_array_equal(largest, x.max(1, initial=0))
    np.testing.assert_array_equal(where, np.where(x.max(1) >= 0, x.argmax(1), 0))


def test_loops_carry_tokens(program: Any) -> None:
    x = np.array([0.5, -2, 3], np.float32)
    np.testing.assert_array_equal(program.run("tokens", x, np.int32(2)), x**4)


def test_sizes_without_sign(program: Any) -> None:
    x = np.arange(400, dtype=np.float32)
    shaped, padded, chosen = program.run("sizes", x, np.float32(-1), np.array([200], np.uint8))
    np.testing.assert_array_equal(shaped, x.reshape(2, 200))
    wanted = np.full(200 + 399 * 201 + 1 + 2, -1, np.float32)
    wanted[200:-2:201] = x
    np.testing.assert_array_equal(padded, wanted)
    assert chosen == [200]


@pytest.mark.parametrize("place", [1, 2**63, 2**64 - 1])
def test_places_without_sign(program: Any, place: int) -> None:
    x, first = np.arange(4, dtype=np.int32), min(place, 2)
    part, updated, one = program.run("places", x, np.uint64(place))
    np.testing.assert_array_equal(part, x[first : first + 2])
    np.testing.assert_array_equal(updated, x)
    assert one == [min(place, 3)]


def test_random_bits_of_brain_floats_are_those_of_xla(program: Any) -> None:
    bits = program.run("bits", np.array([5, 2**63 + 11], np.uint64)).view(np.uint16)
    np.testing.assert_array_equal(bits, [28234, 57738, 39671, 40493, 6839])


def test_tensors_in_bodies_are_for_the_host() -> None:
    text = """
      func.func @main(%x: tensor<3xf32>, %w: tensor<4xf32>) -> tensor<3xf32> {
        %0 = "stablehlo.map"(%x) ({
        ^bb0(%a: tensor<f32>):
          %b = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4xf32>
          %c = stablehlo.multiply %b, %w : tensor<4xf32>
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %m = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0]
            : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          stablehlo.return %m : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>
      }"""
    x, w = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(devscope.compile(text)(x, w), x * w.sum())
    with pytest.raises(LoweringError, match="a kernel cannot make a tensor in the body of an operation of linalg"):
        devscope.compile(text, default="opencl:0")


@pytest.mark.parametrize("is_backwards", [False, True])
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_windows_up_to_each_element(target: str, is_backwards: bool) -> None:
    """Running sums and extrema, as JAX writes them, in as many steps as there are elements."""
    count = 1 << 17
    text = """
      func.func @main(%x: tensor<COUNTxi64>, %y: tensor<2x40x3xbf16>) -> (tensor<COUNTxi64>, tensor<2x40x3xbf16>) {
        %zero = stablehlo.constant dense<0> : tensor<i64>
        %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: COUNT>,
            padding = dense<[SUMS]> : tensor<1x2xi64>}> ({
        ^bb0(%a: tensor<i64>, %b: tensor<i64>):
          %s = stablehlo.add %a, %b : tensor<i64>
          stablehlo.return %s : tensor<i64>
        }) : (tensor<COUNTxi64>, tensor<i64>) -> tensor<COUNTxi64>
        %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
        %1 = "stablehlo.reduce_window"(%y, %least) <{window_dimensions = array<i64: 1, 40, 1>,
            padding = dense<[[0, 0], MOST, [0, 0]]> : tensor<3x2xi64>}> ({
        ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
          %m = stablehlo.maximum %a, %b : tensor<bf16>
          stablehlo.return %m : tensor<bf16>
        }) : (tensor<2x40x3xbf16>, tensor<bf16>) -> tensor<2x40x3xbf16>
        return %0, %1 : tensor<COUNTxi64>, tensor<2x40x3xbf16>
      }"""
    for name, others in (("SUMS", count - 1), ("MOST", 39)):
        text = text.replace(name, str([0, others] if is_backwards else [others, 0]))
    rng = np.random.default_rng(8)
    x, y = rng.integers(-9, 9, count), rng.standard_normal((2, 40, 3)).astype(ml_dtypes.bfloat16)
    sums, most = devscope.compile(text.replace("COUNT", str(count)), default=target, cache=False)(x, y)
    turn = slice(None, None, -1 if is_backwards else 1)
    np.testing.assert_array_equal(sums, np.cumsum(x[turn])[turn])
    np.testing.assert_array_equal(most, np.maximum.accumulate(y[:, turn], 1)[:, turn])


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_few_windows_that_are_large(target: str) -> None:
    """A product of matrices for each: derivatives by filters are so."""
    text = """
      func.func @main(%x: tensor<2x41x20x3xf32>, %w: tensor<2x20x19x4xf32>) -> tensor<2x3x3x4xf32> {
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, b, 1, f],
          window = {stride = [1, 2], pad = [[0, -1], [1, 3]], rhs_dilate = [2, 1]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x41x20x3xf32>, tensor<2x20x19x4xf32>) -> tensor<2x3x3x4xf32>
        return %0 : tensor<2x3x3x4xf32>
      }"""
    rng = np.random.default_rng(9)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 41, 20, 3), (2, 20, 19, 4)))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 3), (0, 0)])
    want = np.empty((2, 3, 3, 4))
    for i, j in np.ndindex(2, 3):
        window = padded[:, i : i + 39 : 2, 2 * j : 2 * j + 19]
        want[i, :, j] = np.tensordot(window.astype(np.float64), w, ([0, 1, 2], [0, 1, 2]))
    np.testing.assert_allclose(devscope.compile(text, default=target, cache=False)(x, w), want, 1e-4, 1e-4)
