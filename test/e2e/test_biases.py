"""Convolutions that begin with a bias: it is added behind them."""

import numpy as np
import pytest

import devscope

TEXT = """
func.func @main(%x: tensor<?x3x9x8x{e}>, %w: tensor<{weights}x{e}>, %b: tensor<6x{e}>) -> tensor<?x6x7x6x{e}> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x9x8x{e}>
  %empty = tensor.empty(%n) : tensor<?x6x7x6x{e}>
  %begin = linalg.broadcast ins(%b : tensor<6x{e}>) outs(%empty : tensor<?x6x7x6x{e}>) dimensions = [0, 2, 3]
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<?x3x9x8x{e}>, tensor<{weights}x{e}>)
    outs(%begin : tensor<?x6x7x6x{e}>) -> tensor<?x6x7x6x{e}>
  %z = {absolute} %y : tensor<?x6x7x6x{e}>
  return %z : tensor<?x6x7x6x{e}>
}}
"""


@pytest.mark.parametrize("target", ["cpu", "opencl"])
@pytest.mark.parametrize("element", ["f16", "f32", "f64", "i32"])
def test_biases(element: str, target: str) -> None:
    """Also of NaN and infinities, and of no images."""
    rng, dtype = np.random.default_rng(8), np.dtype(element.replace("f", "float").replace("i", "int"))
    absolute = "math.absi" if dtype.kind == "i" else "math.absf"
    program = devscope.compile(
        TEXT.format(e=element, weights="6x3x3x3", absolute=absolute), default=f"{target}:0", cache=False
    )
    for images in (0, 1, 4):
        x, w, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((images, 3, 9, 8), (6, 3, 3, 3), 6))
        if dtype.kind == "f":
            b[1:4] = np.nan, np.inf, -np.inf
            x[:, 0, 2, 2] = np.inf
        parts = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        with np.errstate(invalid="ignore"):
            sums = (parts[:, None].astype(np.float64) * w[:, :, None, None]).sum((2, 5, 6))
            want = np.abs(sums + b[:, None, None])
        np.testing.assert_array_equal(program(x, w, b), want.astype(dtype))
