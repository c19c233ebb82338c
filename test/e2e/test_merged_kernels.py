"""Operations that share a launch compute what they compute apart: programs of ``lowering/merged_kernels.mlir``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

PROGRAMS = Path(__file__).parents[1] / "lowering" / "merged_kernels.mlir"


@pytest.fixture(scope="module")
def programs() -> Executable:
    return devscope.compile(PROGRAMS, default="opencl:0")


def launches(programs: Executable, name: str, *arguments: np.ndarray | int) -> tuple[object, int]:
    """What the function computes, and how many launches it takes."""
    programs.reset_counters()
    result = programs.run(name, *arguments)
    return result, programs.counters().launches["opencl:0"]


@pytest.mark.parametrize("rows", [0, 1, 3, 300])
def test_fills_and_a_reduction(programs: Executable, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
    result, count = launches(programs, "argmax", x, rows)
    assert np.array_equal(result, x.argmax(axis=1))
    assert count <= 1


def test_rows_of_other_work_items(programs: Executable) -> None:
    x = np.random.default_rng(1).random((16, 64), np.float32) + 1
    x[2, 3], x[4, 5] = np.nan, np.inf
    result, count = launches(programs, "softmax_sum", x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(result, x / x.sum(axis=1, keepdims=True), rtol=1e-5)
    assert count <= 2


def product(x: np.ndarray) -> np.ndarray:
    """The longest of ways of two steps, or 0."""
    return np.maximum((x[:, :, None] + x[None]).max(axis=1), 0)


def test_transposed_elements_and_such_that_a_body_chooses(programs: Executable) -> None:
    x = np.random.default_rng(2).standard_normal((16, 16)).astype(np.float32)
    (turned, sums), count = launches(programs, "others", x)
    np.testing.assert_allclose(turned, np.tanh(product(x)).T, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(sums, turned + turned[0], rtol=1e-6)
    assert count <= 3


def test_two_results(programs: Executable) -> None:
    x = np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)
    (sines, cosines), count = launches(programs, "two", x)
    np.testing.assert_allclose(sines, np.sin(product(x)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cosines, np.cos(x)[:, :8], rtol=1e-5, atol=1e-6)
    assert count <= 2
