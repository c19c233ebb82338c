"""Products of rows of zeros with a one, and a matrix: rows of the matrix, where that is the same."""

from typing import Any

import numpy as np
import pytest

import devscope

Array = np.ndarray[Any, np.dtype[Any]]

COUNTED = "%at = linalg.index 1 : index\n    %other = arith.index_cast %at : index to {integer}"


def program(weights: str, integer: str, element: str, text: str, extent: int, width: int) -> str:
    """``x`` compared with 0, 1, 2, ..., times ``weights``, the text of a tensor's value, ``[extent, width]``."""
    convert = "arith.extui %equal : i1 to" if element.startswith("i") else "arith.uitofp %equal : i1 to"
    hot, matrix, result = (f"tensor<{shape}x{element}>" for shape in (f"?x{extent}", weights, f"?x{width}"))
    rows = f"{extent}x{width}" if weights == f"{extent}x{width}" else ""
    order = "(k, j)" if rows else "(j, k)"
    return f"""
func.func @main(%x: tensor<?x{integer}>, %w: {matrix}, %old: {result}) -> {result} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x{integer}>
  {text}
  %e = tensor.empty(%n) : {hot}
  %hot = linalg.generic {{indexing_maps = [affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i, k)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<?x{integer}>) outs(%e : {hot}) {{
  ^bb0(%number: {integer}, %o: {element}):
    {COUNTED.format(integer=integer)}
    %equal = arith.cmpi eq, %other, %number : {integer}
    %one = {convert} {element}
    linalg.yield %one : {element}
  }} -> {hot}
  %0 = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> {order}>,
      affine_map<(i, j, k) -> (i, j)>] ins(%hot, %{"c" if text else "w"} : {hot}, {matrix})
    outs(%old : {result}) -> {result}
  return %0 : {result}
}}
"""


def expected(x: Array, weights: Array, old: Array) -> Array:
    """``weights``: rows are asked for by number."""
    hot = x[:, None] == np.arange(len(weights)).astype(x.dtype)
    with np.errstate(invalid="ignore"):
        products = np.where(hot[:, :, None], weights, weights * 0)
        return old + products.sum(1).astype(old.dtype)


def numbers(count: int, extent: int, integer: str) -> Array:
    rng = np.random.default_rng(count)
    dtype = np.dtype(integer.replace("i", "int"))
    most = np.iinfo(dtype).max
    found = rng.integers(-3, min(extent + 4, most), count).astype(dtype)
    found[:2] = [np.iinfo(dtype).min, most][: min(count, 2)]
    return found


@pytest.mark.parametrize("target", ["cpu", "opencl"])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("special", [0.0, np.inf, np.nan])
def test_constant_weights(special: float, turned: bool, target: str) -> None:
    """A weight that is not finite is multiplied by zeros, too."""
    extent, width = 19, 7
    weights = np.random.default_rng(3).standard_normal((extent, width)).astype(np.float32)
    if special != 0.0:
        weights[4, 2] = special
    stored = np.ascontiguousarray(weights.T) if turned else weights
    shape = "x".join(map(str, stored.shape))
    text = f'%c = arith.constant dense<"0x{stored.tobytes().hex()}"> : tensor<{shape}xf32>'
    exe = devscope.compile(program(shape, "i32", "f32", text, extent, width), default=f"{target}:0", cache=False)
    for count in (0, 1, 40):
        x, old = numbers(count, extent, "i32"), np.full((count, width), 0.5, np.float32)
        np.testing.assert_allclose(exe(x, stored, old), expected(x, weights, old), rtol=1e-6)


@pytest.mark.parametrize(("integer", "extent"), [("i8", 256), ("i8", 300), ("i16", 19), ("i64", 19)])
def test_integers(integer: str, extent: int) -> None:
    """Of weights that are arguments; 300 numbers are more than an i8 has, whose comparison holds twice."""
    exe = devscope.compile(program(f"{extent}x5", integer, "i32", "", extent, 5), cache=False)
    weights = np.random.default_rng(4).integers(-9, 9, (extent, 5)).astype(np.int32)
    x, old = numbers(60, min(extent, 100), integer), np.ones((60, 5), np.int32)
    np.testing.assert_array_equal(exe(x, weights, old), expected(x, weights, old))


def test_weights_that_may_be_infinite() -> None:
    exe = devscope.compile(program("19x5", "i32", "f32", "", 19, 5), cache=False)
    weights = np.random.default_rng(5).standard_normal((19, 5)).astype(np.float32)
    weights[3, 1] = np.inf
    x, old = numbers(20, 19, "i32"), np.zeros((20, 5), np.float32)
    np.testing.assert_allclose(exe(x, weights, old), expected(x, weights, old), rtol=1e-6)


def test_operands_whose_bodies_have_assertions() -> None:
    exe = devscope.compile(
        """
        func.func @main(%x: tensor<4x3xf32>, %w: tensor<3x2xf32>) -> tensor<4x2xf32> {
          %zero = arith.constant 0.0 : f32
          %e = tensor.empty() : tensor<4x3xf32>
          %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
              iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
          ^bb0(%a: f32, %o: f32):
            %good = arith.cmpf oge, %a, %zero : f32
            cf.assert %good, "negative"
            %root = math.sqrt %a : f32
            linalg.yield %root : f32
          } -> tensor<4x3xf32>
          %e1 = tensor.empty() : tensor<4x2xf32>
          %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x2xf32>) -> tensor<4x2xf32>
          %0 = linalg.matmul ins(%y, %w : tensor<4x3xf32>, tensor<3x2xf32>)
            outs(%f : tensor<4x2xf32>) -> tensor<4x2xf32>
          return %0 : tensor<4x2xf32>
        }
        """,
        cache=False,
    )
    x, w = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((3, 2), np.float32)
    np.testing.assert_allclose(exe(x, w), np.sqrt(x) @ w, rtol=1e-6)
