"""Random arguments of programs, and whether the results of two builds of one agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.errors import InputError
from devscope.runtime.dtypes import ENTRY_DTYPES, EXTENSION_TYPES
from devscope.runtime.program import TensorSpec

Array = NDArray[Any]

_INTEGERS = 4
"""Random integers are smaller than this: they often serve as indices."""
TOLERANCE = {"f16": 2e-2, "bf16": 5e-2, "f32": 1e-4, "f64": 1e-10, "complex<f32>": 1e-4, "complex<f64>": 1e-10}
"""Largest relative error that is accepted, by dtype; integers must agree exactly."""


def random_array(seed: Sequence[int], spec: TensorSpec, dynamic: int) -> Array:
    """A random argument; dynamic dimensions have size ``dynamic``. Raises InputError when it has no room."""
    shape = [dynamic if size is None else size for size in spec.shape]
    try:
        return _random(np.random.default_rng(seed), spec.dtype, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise InputError(f"cannot make a random array of shape {shape}: {error}") from None


def _random(generator: np.random.Generator, dtype: str, shape: Sequence[int]) -> Array:
    match dtype:
        case "i1":
            return generator.integers(0, 2, shape).astype(np.bool_)
        case "bf16":
            wide = generator.standard_normal(shape).astype(np.float32)
            return (wide.view(np.uint32) >> 16).astype(np.uint16)
        case "index":
            return generator.integers(0, _INTEGERS, shape)
        case "complex<f32>" | "complex<f64>":
            parts = generator.standard_normal([*shape, 2])
            return parts.view(np.complex128)[..., 0].astype(ENTRY_DTYPES[dtype])
        case "f16" | "f32" | "f64":
            return generator.standard_normal(shape).astype(ENTRY_DTYPES[dtype])
        case _:  # small bits are small numbers of the other dtypes
            return generator.integers(0, _INTEGERS, shape).astype(ENTRY_DTYPES[dtype])


def as_numbers(array: Any, dtype: str) -> Array:
    """A result as numbers that numpy can print and compare: bf16 comes as its bits, or in a dtype of its own."""
    array = np.asarray(array)
    if dtype not in EXTENSION_TYPES:
        return array
    if dtype != "bf16":
        return array.view(ENTRY_DTYPES[dtype])
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def relative_error(got: Array, want: Array) -> float:
    """Largest absolute difference over the largest magnitude; for integers and booleans 0 or 1.

    NaNs and infinities must stand in the same places: infinite otherwise.
    """
    if got.shape != want.shape:
        return float("inf")
    is_float = want.dtype.kind in "fc"
    if np.array_equal(got, want, equal_nan=is_float):
        return 0.0
    if not is_float:
        return 1.0
    if want.dtype.kind == "c":  # as pairs: an infinite part may stand beside a finite one
        part = f"f{want.itemsize // 2}"
        got, want = (np.ascontiguousarray(array)[..., None].view(part) for array in (got, want))
    finite = np.isfinite(want)
    if not np.array_equal(np.where(finite, 0, want), np.where(np.isfinite(got), 0, got), equal_nan=True):
        return float("inf")
    wide_got, wide_want = got[finite].astype(np.float64), want[finite].astype(np.float64)
    scale = float(np.max(np.abs(wide_want), initial=0.0)) or 1.0
    return float(np.max(np.abs(wide_got - wide_want), initial=0.0)) / scale
