"""Gates, which take long, of products: computed once for each channel, and broadcast to its pixels."""

import numpy as np
import pytest

import devscope

TEXT = """
#all = affine_map<(c, n) -> (c, n)>
#each = affine_map<(c, n) -> (c)>
func.func @main(%x: tensor<{c}x?xf32>, %v: tensor<16xf32>, %w: tensor<16x{c}xf32>) -> tensor<{c}x?xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{c}xf32>
  %begin = linalg.fill ins(%zero : f32) outs(%empty : tensor<{c}xf32>) -> tensor<{c}xf32>
  %sums = linalg.vecmat ins(%v, %w : tensor<16xf32>, tensor<16x{c}xf32>) outs(%begin : tensor<{c}xf32>)
    -> tensor<{c}xf32>
  %gate = math.tanh %sums : tensor<{c}xf32>
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<{c}x?xf32>
  %to = tensor.empty(%n) : tensor<{c}x?xf32>
  %y = linalg.generic {{indexing_maps = [#all, #each, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %gate : tensor<{c}x?xf32>, tensor<{c}xf32>) outs(%to : tensor<{c}x?xf32>) {{
  ^bb0(%in: f32, %g: f32, %o: f32):
    %z = arith.mulf %in, %g : f32
    linalg.yield %z : f32
  }} -> tensor<{c}x?xf32>
  return %y : tensor<{c}x?xf32>
}}
"""


@pytest.mark.parametrize("channels", [1, 37, 160])
def test_gates(channels: int) -> None:
    """Also of NaN, infinities and signed zeros, and of no pixels."""
    rng = np.random.default_rng(9)
    program = devscope.compile(TEXT.format(c=channels), cache=False)
    v, w = (rng.standard_normal(shape, np.float32) for shape in (16, (16, channels)))
    w[:, channels // 2] = np.nan
    with np.errstate(invalid="ignore"):
        gate = np.tanh(v @ w)
    for pixels in (0, 1, 63, 784):
        x = rng.standard_normal((channels, pixels), np.float32)
        x.flat[: min(3, x.size)] = [np.inf, -0.0, np.nan][: x.size]
        want = x * gate[:, None]
        np.testing.assert_allclose(program(x, v, w), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(want[want == 0]), np.signbit(program(x, v, w)[want == 0]))
