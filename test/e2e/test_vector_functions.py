"""Functions of vectors in kernels of an OpenCL device: behind a contraction whose sums are given numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import devscope

ROWS, COLUMNS = 40, 48
BODIES = {
    "tanh": "%r = math.tanh %p : T",
    "others": """%a = math.absf %p : T
    %s = math.sqrt %a : T
    %f = math.floor %p : T
    %c = math.ceil %s : T
    %t = math.trunc %p : T
    %m = math.fma %s, %c, %f : T
    %n = arith.addf %m, %t : T
    %r = math.copysign %n, %p : T""",
}


def module(element: str) -> str:
    functions = [
        f"""
func.func @{name}(%x: tensor<{ROWS}x2xT>, %w: tensor<2x{COLUMNS}xT>) -> tensor<{ROWS}x{COLUMNS}xT> {{
  %zero = arith.constant 0.0 : T
  %e = tensor.empty() : tensor<{ROWS}x{COLUMNS}xT>
  %z = linalg.fill ins(%zero : T) outs(%e : tensor<{ROWS}x{COLUMNS}xT>) -> tensor<{ROWS}x{COLUMNS}xT>
  %0 = linalg.matmul ins(%x, %w : tensor<{ROWS}x2xT>, tensor<2x{COLUMNS}xT>)
                     outs(%z : tensor<{ROWS}x{COLUMNS}xT>) -> tensor<{ROWS}x{COLUMNS}xT>
  %1 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%0 : tensor<{ROWS}x{COLUMNS}xT>) outs(%e : tensor<{ROWS}x{COLUMNS}xT>) {{
  ^bb0(%p: T, %unused: T):
    {body}
    linalg.yield %r : T
  }} -> tensor<{ROWS}x{COLUMNS}xT>
  return %1 : tensor<{ROWS}x{COLUMNS}xT>
}}"""
        for name, body in BODIES.items()
    ]
    return "".join(functions).replace("xT", f"x{element}").replace(": T", f": {element}")


def others(x: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.abs(x))
    return np.copysign(root * np.ceil(root) + np.floor(x) + np.trunc(x), x)


@pytest.mark.parametrize(
    ("element", "dtype", "tolerance"), [("f32", np.float32, 1e-6), ("f64", np.float64, 1e-14)]
)
def test_functions_of_vectors(element: str, dtype: type, tolerance: float) -> None:
    programs = devscope.compile(module(element), default="opencl:0")
    rng = np.random.default_rng(0)
    numbers = (rng.standard_normal(ROWS) * 10.0 ** rng.integers(-6, 5, ROWS)).astype(dtype)
    numbers[:7] = 0.0, math.nan, math.inf, -math.inf, 0.5, -2.5, 1e-30
    x = np.stack([numbers, np.zeros(ROWS, dtype)], axis=1)
    w = np.ones((2, COLUMNS), dtype)
    with np.errstate(invalid="ignore"):
        for name, function in (("tanh", np.tanh), ("others", others)):
            expected = np.repeat(function(numbers)[:, None], COLUMNS, axis=1)
            np.testing.assert_allclose(programs.run(name, x, w), expected, rtol=tolerance, atol=0)
