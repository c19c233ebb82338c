"""Products of rows: in any order where they are finite, in their order where that is not so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope

LENGTHS = (0, 1, 3, 16, 31, 64, 200, -1)


def _source(type_: str, lengths: tuple[int, ...]) -> str:
    functions: list[str] = []
    for number, length in enumerate(lengths):
        rows = f"tensor<?x{'?' if length < 0 else length}x{type_}>"
        functions.append(f"""
          func.func @f{number}(%x: {rows}, %start: tensor<?x{type_}>) -> tensor<?x{type_}> {{
            %r = linalg.reduce {{ arith.mulf }} ins(%x : {rows}) outs(%start : tensor<?x{type_}>) dimensions = [1]
            return %r : tensor<?x{type_}>
          }}""")
    return "\n".join(functions)


def _rows(dtype: Any, length: int) -> np.ndarray[Any, Any]:
    """Ordinary ones, and those whose parts overflow, are 0, or not finite."""
    x = np.random.default_rng(length).uniform(0.8, 1.25, (8, length)).astype(dtype)
    large = np.finfo(dtype).max ** dtype(0.8)
    if length > 2:
        x[1, [0, length // 2, -1]] = large, 0, large
        x[2, [0, length // 2, -1]] = large, 1 / large, large
        x[3, length // 2], x[4, -1], x[5, 0] = np.inf, np.nan, -0.0
        x[6, ::2], x[6, 1::2] = large, 1 / large
    return x


@pytest.mark.parametrize(("type_", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_products(type_: str, dtype: Any) -> None:
    program = devscope.compile(_source(type_, LENGTHS))
    for number, length in enumerate(LENGTHS):
        x = _rows(dtype, 77 if length < 0 else length)
        start = np.linspace(-2, 2, len(x)).astype(dtype)
        wanted = start.copy()
        with np.errstate(all="ignore"):
            for column in x.T:
                wanted *= column
        found: Any = program.run(f"f{number}", x, start)
        finite = np.isfinite(wanted) & (wanted != 0)
        np.testing.assert_allclose(found[finite], wanted[finite], rtol=2e-4 if type_ == "f32" else 1e-12)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
