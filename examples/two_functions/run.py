"""One executable with two entries, whose shared function runs on opencl:0, against numpy.

python examples/two_functions/run.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import devscope
from devscope.errors import DevscopeError

MODEL = Path(__file__).with_name("model.mlir")
TOLERANCE = 1e-5

Array = NDArray[np.float32]


def random_inputs(seed: int = 0) -> tuple[Array, Array, Array]:
    """x: [5, 32], y: [7, 32], w: [32, 16]."""
    generator = np.random.default_rng(seed)
    x, y, w = (generator.standard_normal(shape).astype(np.float32) for shape in ((5, 32), (7, 32), (32, 16)))
    return x, y, w / np.float32(4)


def relative_error(got: Array, want: Array) -> float:
    """The largest error over the largest magnitude: inner products may cancel to almost nothing."""
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def main() -> int:
    x, y, w = random_inputs()
    program = devscope.compile(MODEL)
    results = {
        "encode": (program.run("encode", x, w), np.tanh(x @ w)),
        "compare": (program.run("compare", x, y, w), np.tanh(x @ w) @ np.tanh(y @ w).T),
    }
    errors = {name: relative_error(got, want) for name, (got, want) in results.items()}
    text = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    print(f"two_functions: max relative error: {text} (limit {TOLERANCE:.0e})")
    return 0 if all(error <= TOLERANCE for error in errors.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
