"""Results against those of PyTorch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

RTOL, ATOL = 2e-4, 2e-5


def difference(got: Any, want: Any, path: str = "result") -> str:
    """What differs, and where; empty if nothing."""
    if isinstance(want, torch.Tensor):
        return _array(np.asarray(got), want.detach(), path)
    if isinstance(want, dict):
        if list(got) != list(want):
            return f"{path}: keys {list(got)}, not {list(want)}"
        return next((said for key in want if (said := difference(got[key], want[key], f"{path}[{key!r}]"))), "")
    if dataclasses.is_dataclass(want):
        fields = {field.name: getattr(want, field.name) for field in dataclasses.fields(want)}
        return difference({name: getattr(got, name) for name in fields}, fields, path)
    if isinstance(want, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(want):
            return f"{path}: {type(got).__name__}, not {type(want).__name__} of {len(want)}"
        pairs = enumerate(zip(got, want, strict=True))
        return next((said for n, (a, b) in pairs if (said := difference(a, b, f"{path}[{n}]"))), "")
    return "" if got == want else f"{path}: {got!r}, not {want!r}"


def _array(got: Any, want: torch.Tensor, path: str) -> str:
    if got.dtype.name != str(want.dtype).removeprefix("torch."):
        return f"{path}: dtype {got.dtype}, not {want.dtype}"
    if got.shape != tuple(want.shape):
        return f"{path}: shape {got.shape}, not {tuple(want.shape)}"
    half = want.dtype in (torch.float16, torch.bfloat16)
    wide = want.to(torch.float64).numpy() if half else want.resolve_conj().resolve_neg().numpy()
    found = got.astype(np.float64) if half else got
    if not np.issubdtype(wide.dtype, np.inexact):
        return (
            "" if np.array_equal(found, wide) else f"{path}: {found.reshape(-1)[:6]}, not {wide.reshape(-1)[:6]}"
        )
    rtol, atol = (2e-2, 2e-2) if half else (RTOL, ATOL)
    if np.allclose(found, wide, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    wrong = ~np.isclose(found, wide, rtol=rtol, atol=atol, equal_nan=True)
    return f"{path}: {wrong.sum()} of {wrong.size} differ: {found[wrong][:3]}, not {wide[wrong][:3]}"
