"""A convolutional network whose layers run on opencl:0 and whose softmax runs on the host, against numpy.

python examples/convnet/run.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import devscope
from devscope.errors import DevscopeError

MODEL = Path(__file__).with_name("model.mlir")
TOLERANCE = 1e-5

Array = NDArray[np.float32]


def random_inputs(seed: int = 0) -> list[Array]:
    """Images and weights, in the order of the model's arguments."""
    generator = np.random.default_rng(seed)
    shapes = [(8, 1, 28, 28), (6, 1, 5, 5), (6,), (864, 10), (10,)]
    scales = [1.0, 0.2, 0.1, 0.03, 0.1]
    return [
        (generator.standard_normal(shape) * scale).astype(np.float32)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def reference(images: Array, filters: Array, bias: Array, weights: Array, offsets: Array) -> Array:
    """What numpy computes: [8, 1, 28, 28] -> [8, 10]."""
    patches = sliding_window_view(images, filters.shape[2:], axis=(2, 3))
    convolved = np.einsum("nchwij,fcij->nfhw", patches, filters)
    activated = np.maximum(convolved + bias[:, None, None], 0)
    pooled = activated.reshape(8, 6, 12, 2, 12, 2).max(axis=(3, 5))
    logits = pooled.reshape(8, -1) @ weights + offsets
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main() -> int:
    program = devscope.compile(MODEL)
    inputs = random_inputs()
    got, want = program(*inputs), reference(*inputs)
    error = float(np.max(np.abs(got - want) / np.abs(want)))
    counters = program.counters()
    print(
        f"convnet: {counters.launches['opencl:0']} kernels on opencl:0, {counters.h2d.bytes:,} bytes copied to it "
        f"and {counters.d2h.bytes:,} back; max relative error {error:.1e} (limit {TOLERANCE:.0e})"
    )
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
