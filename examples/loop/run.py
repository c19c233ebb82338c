"""Power iteration with its vectors on opencl:0 and its loop condition on the host, against numpy.

python examples/loop/run.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
    """A symmetric matrix, [n, n], with eigenvalues 2, 1, and the others between 0 and 1."""
    generator = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(generator.standard_normal((SIZE, SIZE)))
    values = np.concatenate([[2.0, 1.0], generator.random(SIZE - 2)])
    return ((basis * values) @ basis.T).astype(np.float32)


def reference(matrix: Array) -> tuple[NDArray[np.float64], float]:
    """The eigenvector of the largest eigenvalue, and that value."""
    values, vectors = np.linalg.eigh(matrix.astype(np.float64))
    return vectors[:, -1], float(values[-1])


def relative_error(got: NDArray[Any], want: NDArray[Any]) -> float:
    """The largest error over the largest magnitude."""
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def main() -> int:
    matrix = random_matrix()
    start = np.full(SIZE, SIZE**-0.5, np.float32)
    program = devscope.compile(MODEL)
    vector, value, steps = program(matrix, start, np.float32(1e-6), np.int64(STEPS))
    want_vector, want_value = reference(matrix)
    want_vector *= np.sign(want_vector @ vector)  # an eigenvector's sign is free
    error = max(relative_error(vector, want_vector), relative_error(value, np.array(want_value)))
    counters = program.counters()
    print(
        f"loop: eigenvalue {float(value):.6f} after {int(steps)} steps; {counters.d2h.copies} copies, "
        f"{counters.d2h.bytes:,} bytes, to the host; max relative error {error:.1e} (limit {TOLERANCE:.0e})"
    )
    converged = 1 < int(steps) < STEPS
    return 0 if converged and error <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
