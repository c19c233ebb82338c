"""Power iteration with its vectors on opencl:0 and its loop condition on the host, against numpy.

    python examples/loop/run.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import devscope
from devscope.errors import DevscopeError

MODEL = Path(__file__).with_name("model.mlir")
SIZE = 200
STEPS = 100
TOLERANCE = 1e-5

Array = NDArray[np.float32]


def random_matrix(seed: int = 0) -> Array:
    """A symmetric matrix with positive entries, [n, n], whose largest eigenvalue stands well apart."""
    half = np.random.default_rng(seed).random((SIZE, SIZE))
    return ((half + half.T) / 2).astype(np.float32)


def main() -> int:
    matrix = random_matrix()
    start = np.full(SIZE, SIZE**-0.5, np.float32)
    program = devscope.compile(MODEL)
    vector, value, steps = program(matrix, start, np.float32(1e-4), np.int64(STEPS))
    values, vectors = np.linalg.eigh(matrix.astype(np.float64))
    want = vectors[:, -1] * np.sign(vectors[:, -1].sum())
    error = max(
        abs(float(value) - values[-1]) / values[-1], float(np.max(np.abs(vector - want)) / np.max(np.abs(want)))
    )
    counters = program.counters()
    print(
        f"loop: eigenvalue {float(value):.4f} after {int(steps)} steps, {counters.d2h.copies} copies "
        f"({counters.d2h.bytes:,} bytes) to the host; max relative error {error:.1e} (limit {TOLERANCE:.0e})"
    )
    converged = 1 < int(steps) < STEPS
    return 0 if converged and error <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
