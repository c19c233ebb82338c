"""Constants behind convolutions and contractions, such as those of a batch normalisation, beside numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import devscope

Array = np.ndarray[Any, Any]

CONVOLUTION = """
#own = affine_map<(b, c, h, w) -> (b, c, h, w)>
#channel = affine_map<(b, c, h, w) -> (c)>
#column = affine_map<(b, c, h, w) -> (c, 0)>
func.func @main(%x: tensor<2x3x9x9xf32>) -> {results} {{
  %w = arith.constant {w}
  %mean = arith.constant {mean}
  %variance = arith.constant {variance}
  %factor = arith.constant {factor}
  %begin = arith.constant {begin} : f32
  %one = arith.constant 1.0 : f32
  %little = arith.constant 1.0e-3 : f32
  %empty = tensor.empty() : tensor<2x4x7x7xf32>
  %fill = linalg.fill ins(%begin : f32) outs(%empty : tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %sums = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x3x9x9xf32>, tensor<4x3x3x3xf32>)
    outs(%fill : tensor<2x4x7x7xf32>) -> tensor<2x4x7x7xf32>
  %done = linalg.generic {{indexing_maps = [#own, #channel, #column, #channel, #own],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%sums, %mean, %variance, %factor : tensor<2x4x7x7xf32>, tensor<4xf32>, tensor<4x1xf32>, tensor<4xf32>)
    outs(%empty : tensor<2x4x7x7xf32>) {{
  ^bb0(%sum: f32, %m: f32, %v: f32, %f: f32, %o: f32):
    %more = arith.addf %v, %little : f32
    %root = math.sqrt %more : f32
    %around = arith.subf %sum, %m : f32
    %scaled = arith.divf %around, %root : f32
    %turned = arith.subf %one, %scaled : f32
    %product = arith.mulf %f, %turned : f32
    %size = math.absf %product : f32
    %r = arith.mulf %size, %product : f32
    linalg.yield %r : f32
  }} -> tensor<2x4x7x7xf32>
  return {returned} : {results}
}}
"""


def literal(array: Array) -> str:
    return f'dense<"0x{array.tobytes().hex()}"> : tensor<{"x".join(map(str, array.shape))}xf32>'


def run(
    rng: np.random.Generator, target: str, w: Array, factor: Sequence[float], begin: float = 0, keep: bool = False
) -> tuple[list[Array], list[Array]]:
    """What the program computes, and what numpy does."""
    mean = rng.standard_normal(4, dtype=np.float32)
    variance = rng.uniform(0.3, 3, (4, 1)).astype(np.float32)
    kind = "tensor<2x4x7x7xf32>"
    text = CONVOLUTION.format(
        w=literal(w),
        mean=literal(mean),
        variance=literal(variance),
        factor=literal(np.array(factor, np.float32)),
        begin=float(begin),
        results=f"({kind}, {kind})" if keep else kind,
        returned="%done, %sums" if keep else "%done",
    ).replace(f": ({kind}, {kind})\n", f": {kind}, {kind}\n")
    x = rng.standard_normal((2, 3, 9, 9), dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    with devscope.compile(text, default=target, cache=False) as executable:
        got = executable(x)
    sums = np.einsum("bchwij,fcij->bfhw", windows.astype(np.float64), w.astype(np.float64)) + begin
    apart = (sums - mean[:, None, None]) / np.sqrt(variance + 1e-3)[:, :, None]
    product = np.array(factor)[:, None, None] * (1 - apart)
    want = [np.abs(product) * product, *([sums] if keep else [])]
    return list(got) if keep else [got], want


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(("begin", "keep"), [(0, False), (1.5, False), (0, True)], ids=str)
def test_normalisation(target: str, begin: float, keep: bool) -> None:
    """Also of sums that begin with another number, or that somebody else reads."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
    got, want = run(rng, target, w, [0.5, -2, 3, 0], begin, keep)
    for result, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("factor", [[np.inf, 1, 1, 1], [np.nan, 1, 1, 1], [1e38, 1, 1, 1], [1e-38, 1, 1, 1]])
def test_what_scaled_weights_would_not_be(factor: Sequence[float]) -> None:
    """Infinities, NaN and subnormal numbers are not made of weights that are none."""
    rng = np.random.default_rng(1)
    w = 16 * rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
    with np.errstate(all="ignore"):
        (got,), (want,) = run(rng, "cpu:0", w, factor)
        np.testing.assert_allclose(got[:, 1:], want[:, 1:], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_weights_that_are_not_finite() -> None:
    rng = np.random.default_rng(2)
    w = rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
    w[2, 1, 0, 0] = np.inf
    with np.errstate(all="ignore"):
        (got,), (want,) = run(rng, "cpu:0", w, [1, 1, 0, 1])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [2, 1e30], ids=str)
def test_numbers_as_operands(number: float) -> None:
    """Also where their product is too large."""
    rng = np.random.default_rng(3)
    w, x = (rng.standard_normal(shape, dtype=np.float32) for shape in ((16, 20), (20, 30)))
    text = f"""
    func.func @main(%x: tensor<20x30xf32>, %given: f32, %chosen: i1) -> tensor<16x30xf32> {{
      %w = arith.constant {literal(w)}
      %zero = arith.constant 0.0 : f32
      %two = arith.constant {number:.1e} : f32
      %empty = tensor.empty() : tensor<16x30xf32>
      %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x30xf32>) -> tensor<16x30xf32>
      %sums = linalg.matmul ins(%w, %x : tensor<16x20xf32>, tensor<20x30xf32>)
        outs(%fill : tensor<16x30xf32>) -> tensor<16x30xf32>
      %done = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>,
          affine_map<(m, n) -> ()>, affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
          iterator_types = ["parallel", "parallel"]}}
        ins(%sums, %two, %given, %chosen : tensor<16x30xf32>, f32, f32, i1) outs(%empty : tensor<16x30xf32>) {{
      ^bb0(%s: f32, %t: f32, %g: f32, %c: i1, %o: f32):
        %twice = arith.mulf %s, %t : f32
        %less = arith.subf %twice, %t : f32
        %again = arith.mulf %less, %t : f32
        %more = arith.mulf %again, %g : f32
        %r = arith.select %c, %more, %g : f32
        linalg.yield %r : f32
      }} -> tensor<16x30xf32>
      return %done : tensor<16x30xf32>
    }}
    """
    with devscope.compile(text, cache=False) as executable:
        got = executable(x, np.float32(3), np.bool_(True))
    number = np.float32(number)
    with np.errstate(all="ignore"):
        want = (number * (w @ x) - number) * number * 3
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
