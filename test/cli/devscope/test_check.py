"""The comparison behind ``--check``."""

from __future__ import annotations

import numpy as np
import pytest

from devscope.agreement import as_numbers, relative_error

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("got", "want", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([0.5], [0.0], 0.5),
        ([NAN, INF, -INF], [NAN, INF, -INF], 0.0),
        ([NAN, 1.0], [1.0, 1.0], INF),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([INF, 1.5], [INF, 1.0], 0.5),
        ([1.0], [1.0, 1.0], INF),
        ([], [], 0.0),
    ],
)
def test_floats(got: list[float], want: list[float], error: float) -> None:
    assert relative_error(np.array(got, np.float32), np.array(want, np.float32)) == pytest.approx(error)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.int8])
def test_integers_agree_exactly_or_not_at_all(dtype: type) -> None:
    assert relative_error(np.array([1, 0], dtype), np.array([1, 0], dtype)) == 0.0
    assert relative_error(np.array([1, 1], dtype), np.array([1, 0], dtype)) == 1.0


def test_scalars() -> None:
    assert relative_error(as_numbers(np.float32(1.5), "f32"), as_numbers(np.float32(1.0), "f32")) == 0.5


def test_bf16_compares_as_numbers() -> None:
    bits = np.array([0x3F80, 0xC000], np.uint16)
    assert as_numbers(bits, "bf16").tolist() == [1.0, -2.0]
    assert as_numbers(bits[0], "bf16") == 1.0
