"""Operations of linalg that write parts of their results: all else is what was there before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError


def program(result: str, index: str, adds: bool) -> str:
    body = "%c = arith.addf %a, %b : f32" if adds else "%c = arith.negf %a : f32"
    return f"""
func.func @main(%x: tensor<?x3xf32>, %y: tensor<{result}xf32>) -> tensor<{result}xf32> {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({index})>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<?x3xf32>) outs(%y : tensor<{result}xf32>) {{
  ^bb0(%a: f32, %b: f32):
    {body}
    linalg.yield %c : f32
  }} -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}
"""


PLACES: dict[str, tuple[str, Callable[[int], Any], tuple[int, ...]]] = {
    "i, j, i": ("?x3x?", lambda n: (np.arange(n)[:, None], np.arange(3), np.arange(n)[:, None]), (4, 3, 4)),
    "1, i, j": ("2x?x3", lambda n: (1,), (2, 4, 3)),
    "j * 2, i": ("5x?", lambda n: (np.arange(0, 5, 2), np.arange(n)[:, None]), (5, 4)),
    "2 - j, i": ("3x?", lambda n: (2 - np.arange(3), np.arange(n)[:, None]), (3, 4)),
}


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("index", PLACES)
def test_parts(index: str, adds: bool, default: str) -> None:
    result, places, shape = PLACES[index]
    made = devscope.compile(program(result, index, adds), default=default)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(sizes).astype(np.float32) for sizes in ((4, 3), shape))
    wanted = y.copy()
    wanted[places(4)] = wanted[places(4)] + x if adds else -x
    np.testing.assert_array_equal(made(x, y), wanted)


def test_an_element_without_a_loop() -> None:
    text = """
func.func @main(%y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<() -> (2)>], iterator_types = []} outs(%y : tensor<4xf32>) {
  ^bb0(%b: f32):
    %c = arith.negf %b : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    with pytest.raises(LoweringError, match="writes one element of a larger tensor"):
        devscope.compile(text)
