"""The backend ``blas`` beside the host's own code."""

from itertools import product

import numpy as np
import pytest
from products import product_of

import devscope
from devscope.backend_check import check_backend
from devscope.errors import DevscopeError

pytest.importorskip("scipy_openblas32")


@pytest.mark.long
def test_conformance() -> None:
    assert [outcome for outcome in check_backend("blas") if outcome.problem] == []


@pytest.mark.parametrize(
    ("left", "right", "before", "element"), [*product((0, 1), (0, 1), (0, 1), ("f32", "f64"))]
)
def test_transposes(left: int, right: int, before: int, element: str) -> None:
    """``before``: whether an operation transposes the left one once more, which is folded."""
    program = product_of(bool(left), bool(right), bool(before), element)
    executable = devscope.compile(program.text, backends=["blas"], cache=False)
    assert executable.program.uses == {"blas": [f"scipy_cblas_{'s' if element == 'f32' else 'd'}gemm"]}
    random, dtype = np.random.default_rng(0), np.dtype(element.replace("f32", "f4").replace("f64", "f8"))
    given = [random.standard_normal(shape).astype(dtype) for shape in program.shapes]
    np.testing.assert_allclose(executable(*given), program.expected(*given), rtol=1e-5)


def test_constants_and_values_that_are_no_numbers() -> None:
    text = """func.func @main(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %c0 = arith.constant 0 : index
      %w = arith.constant dense<[[1.0, 2.0], [3.0, 0.0]]> : tensor<2x2xf32>
      %zero = arith.constant 0.0 : f32
      %m = tensor.dim %a, %c0 : tensor<?x2xf32>
      %e = tensor.empty(%m) : tensor<?x2xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
      %r = linalg.matmul ins(%a, %w : tensor<?x2xf32>, tensor<2x2xf32>)
        outs(%z : tensor<?x2xf32>) -> tensor<?x2xf32>
      return %r : tensor<?x2xf32>
    }"""
    executable = devscope.compile(text, backends=["blas"], cache=False)
    a = np.array([[1, 2], [np.inf, 0], [0, np.nan], [-0.0, -0.0]], np.float32)
    with np.errstate(invalid="ignore"):
        expected = a @ np.array([[1, 2], [3, 0]], np.float32)
    np.testing.assert_array_equal(executable(a), expected)
    assert executable(np.zeros((0, 2), np.float32)).shape == (0, 2)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_and_a_column(axis: int) -> None:
    """The same numbers for all rows are added in the call, those for all columns after it."""
    text = f"""func.func @main(%a: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<4x4xf32> {{
      %z = arith.constant dense<0.0> : tensor<4x4xf32>
      %e = tensor.empty() : tensor<4x4xf32>
      %r = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>)
        -> tensor<4x4xf32>
      %b = linalg.broadcast ins(%v : tensor<4xf32>) outs(%e : tensor<4x4xf32>) dimensions = [{axis}]
      %s = arith.addf %r, %b : tensor<4x4xf32>
      return %s : tensor<4x4xf32>
    }}"""
    executable = devscope.compile(text, backends=["blas"], cache=False)
    a, v = np.eye(4, dtype=np.float32), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(executable(a, v), a + (v if axis == 0 else v[:, None]))


def test_a_factor_that_is_one_number() -> None:
    text = """func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %z = arith.constant dense<0.0> : tensor<4x4xf32>
      %b = arith.constant dense<2.0> : tensor<4x4xf32>
      %r = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>)
        -> tensor<4x4xf32>
      return %r : tensor<4x4xf32>
    }"""
    executable = devscope.compile(text, backends=["blas"], cache=False)
    assert executable.program.uses == {}
    np.testing.assert_array_equal(executable(np.ones((4, 4), np.float32)), np.full((4, 4), 8, np.float32))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from devscope.backends.blas.runtime import BlasRuntime
    from devscope.runtime import plugins

    monkeypatch.setitem(plugins._registered, "blas", BlasRuntime())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setenv("DEVSCOPE_OPENBLAS", "/nowhere/libopenblas.so")
    text = """func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %z = arith.constant dense<0.0> : tensor<2x2xf32>
      %r = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>)
        outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>
    }"""
    with pytest.raises(DevscopeError, match="backend 'blas': what its programs need is missing") as raised:
        devscope.compile(text, backends=["blas"], cache=False)
    assert "note: pip install 'devscope[blas]'" in str(raised.value)
    with pytest.raises(DevscopeError, match="backend 'blas': what its programs need is missing"):
        list(check_backend("blas"))
