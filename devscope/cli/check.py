"""``devscope run --check``: the same call of the same program, built for the host alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.api import CompileOptions, build
from devscope.cli.arrays import as_numbers
from devscope.dialects.target import device_types
from devscope.errors import DevscopeError
from devscope.runtime.executable import Executable

#: Largest relative error that is accepted, by dtype; integers must agree exactly.
_TOLERANCE = {"f16": 2e-2, "bf16": 5e-2, "f32": 1e-4, "f64": 1e-10}


def check_against_host(
    file: Path, options: CompileOptions, entry: str, values: Sequence[Any], results: Sequence[Any]
) -> None:
    """Print how each result compares with that of a build without devices.

    Raises DevscopeError when one differs by more than rounding explains.
    """
    everything_on_host = {kind: "cpu" for kind in device_types() if kind != "cpu"}
    reference = Executable(build(file, dataclasses.replace(options, targets=everything_on_host)), cache=None)
    expected = reference.run(entry, *values)
    expected = expected if isinstance(expected, tuple) else (expected,)
    differing: list[str] = []
    for number, spec in enumerate(reference.entries[entry].outputs):
        got, want = as_numbers(results[number], spec.dtype), as_numbers(expected[number], spec.dtype)
        error = relative_error(got, want)
        limit = _TOLERANCE.get(spec.dtype, 0.0)
        verdict = "agrees with" if error <= limit else "DIFFERS from"
        print(f"check: result{number} {verdict} the host (relative error {error:.2e}, limit {limit:.0e})")
        if not error <= limit:
            differing.append(f"result{number}")
    if differing:
        raise DevscopeError(f"{', '.join(differing)}: not what the host computes")


def relative_error(got: NDArray[Any], want: NDArray[Any]) -> float:
    """Largest absolute difference over the largest magnitude; for integers and booleans 0 or 1.

    NaNs and infinities must stand in the same places: infinite otherwise.
    """
    if got.shape != want.shape:
        return float("inf")
    is_float = want.dtype.kind == "f"
    if np.array_equal(got, want, equal_nan=is_float):
        return 0.0
    if not is_float:
        return 1.0
    finite = np.isfinite(want)
    if not np.array_equal(np.where(finite, 0, want), np.where(np.isfinite(got), 0, got), equal_nan=True):
        return float("inf")
    wide_got, wide_want = got[finite].astype(np.float64), want[finite].astype(np.float64)
    scale = float(np.max(np.abs(wide_want))) or 1.0
    return float(np.max(np.abs(wide_got - wide_want))) / scale
