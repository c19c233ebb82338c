"""What `kernels.py` measures: every work as MLIR text, as numpy and torch compute it, and how much it is.

The text is what people's frontends produce: named contractions, convolutions and pooling, `tensor.pad` before
them, `linalg.transpose` before a matmul with a transposed side, one `linalg.generic` per elementwise operation.
Elementwise named operations are not in it: linalg's set of them differs from version to version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Run = Callable[[], Any]

COPIED = 64 << 20
"""Bytes of the copy that memory bandwidth is measured by."""


@dataclass(frozen=True)
class Work:
    """One row of the table.

    ``text`` makes the module, whose ``@main`` takes ``inputs()``. ``numpy(out, *arrays)`` and ``torch(torch, out,
    *tensors)`` make a function of no arguments that computes the same; ``out`` is where the result may go, None at
    numpy's first call. ``amount`` is in flop where the unit is GFLOP/s, in bytes moved at least where it is GB/s.
    """

    name: str
    group: str
    text: Callable[[], str]
    inputs: Callable[[], list[Any]]
    numpy: Callable[..., Run]
    torch: Callable[..., Run]
    unit: str = "ms"
    amount: float = 0.0
    target: float = 1.0
    numpy_is_peer: bool = True
    """Otherwise numpy has no such operation, and only says what is right."""
    compiled: bool = False
    """Is `torch.compile` a peer?"""
    bandwidth: bool = False
    """Memory bandwidth is the limit: the row has a target for its share of it."""
    scales: bool = False
    """The cores are the limit: the row has a target for two threads against one."""


def normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[[], list[Any]]:
    """Inputs: normally distributed, with a variance that keeps sums of products near 1."""

    def make() -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]

    return make
