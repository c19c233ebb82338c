"""The rows of `kernels.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from _contraction_work import attention, batch_matmul, matmul
from _convolution_work import convolution, pooling, transposed
from _kernel_work import Work
from _model_work import convnet_torch, graph, mlp_work, transformer_torch
from _row_work import (
    GELU,
    broadcast_add,
    function,
    gelu_numpy,
    layer_norm,
    reduction,
    softmax,
    ten_operations,
    transpose,
)

_LARGE = ((2048, "f16"), (4096, "f16"), (4096, "f32"), (8192, "f16"))


def _large(s: Callable[[int], int]) -> list[Work]:
    """Rows that fill a GPU."""
    return [
        batch_matmul(s(64), s(512), s(128), s(512)),
        convolution("3x3", True, s(256), s(64), s(128), 3),
        convolution("3x3", False, s(256), s(64), s(128), 3),
        softmax(s(16384), s(2048)),
        layer_norm(s(16384), s(2048)),
        *[reduction("sum", s(8192), axis) for axis in (1, 0)],
        transpose(s(8192)),
        ten_operations(s(8192)),
    ]


def works(small: bool = False) -> dict[str, Work]:
    """All rows by name; ``small``: a sixteenth of every size, and the whole models as they are."""

    def s(size: int) -> int:
        return max(size // 16, min(size, 4)) if small else size

    matmuls = [matmul(s(n), s(n), s(n), side) for n in (256, 512, 1024, 2048) for side in ("", "A", "B")]
    if small:
        matmuls = matmuls[-3:]
    rows = (s(256), s(1024), s(4096))
    rows = rows[-1:] if small else rows
    big = s(4096)
    both = (True, False)
    found = [
        *matmuls,
        matmul(s(500), s(501), s(499)),
        matmul(s(64), s(784), s(1024)),
        matmul(s(64), s(1024), s(10), scales=False),
        matmul(1, s(4096), s(4096), scales=False),
        matmul(s(1024), s(1024), s(1024), dtype="f64"),
        batch_matmul(s(16), s(128), s(64), s(128)),
        attention(s(8), s(512), s(64)),
        *[convolution("3x3", last, s(56), s(64), s(64), 3) for last in both],
        *[convolution("1x1", last, s(56), s(64), s(256), 1) for last in both],
        *[convolution("7x7 stride 2", last, s(224), 3, s(64), 7, stride=2) for last in both],
        *[convolution("depthwise 3x3", last, s(56), s(128), s(128), 3, depthwise=True) for last in both],
        *[convolution("3x3x3", last, s(28), s(32), s(32), 3, rank=3) for last in both],
        transposed(s(28), s(64), s(32)),
        *[pooling(kind, last, s(112), s(64)) for kind in ("max", "mean") for last in both],
        mlp_work(),
        *[softmax(big, width) for width in rows],
        *[layer_norm(big, width) for width in rows],
        *[reduction(kind, big, axis) for kind in ("sum", "argmax") for axis in (1, 0)],
        ten_operations(big),
        function(
            "gelu",
            big,
            GELU,
            gelu_numpy,
            lambda torch, out, x: lambda: torch.ops.aten.gelu.out(x, out=out),
            numpy_is_peer=False,
        ),
        *[
            function(
                name,
                big,
                f"%r = math.{name} %a : f32",
                lambda out, x, name=name: lambda: getattr(np, name)(x, out=out),
                lambda torch, out, x, name=name: lambda: getattr(torch, name)(x, out=out),
            )
            for name in ("tanh", "exp")
        ],
        transpose(big),
        broadcast_add(big),
        graph("transformer block", transformer_torch),
        graph("convnet", convnet_torch),
        *[matmul(s(n), s(n), s(n), dtype=d, group="large") for n, d in _LARGE],
        *[replace(work, group="large") for work in _large(s)],
    ]
    return {work.name: work for work in found}
