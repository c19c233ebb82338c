"""Whole models, for `kernels.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import _mlp
import numpy as np
from _graphs import GRAPHS, module_text
from _kernel_work import Run, Work


def mlp_work() -> Work:
    def by_torch(torch: Any, out: Any, images: Any) -> Run:
        del out
        arrays = [torch.from_numpy(array) for array in _mlp.parameters()]
        layers = [(w.T.contiguous(), b) for w, b in zip(arrays[::2], arrays[1::2], strict=True)]

        def run() -> Any:
            x = images
            for number, (weight, bias) in enumerate(layers):
                x = torch.nn.functional.linear(x, weight, bias)
                x = x.relu_() if number < len(layers) - 1 else x
            return x

        return run

    def by_numpy(out: Any, images: Any) -> Run:
        del out
        arrays = _mlp.parameters()
        return lambda: _mlp.reference(images, arrays)

    return Work(
        "MLP 64x(784-1024-1024-10), constant weights",
        "mlp",
        lambda: _mlp.module_text(True),
        lambda: [_mlp.batch()],
        by_numpy,
        by_torch,
        target=1.2,
        scales=True,
    )


def transformer_torch(torch: Any, out: Any, x: Any, *rest: Any) -> Run:
    del out
    q, k, v, mix, up, down, *scalars = rest
    epsilon, factor = float(scalars[1]), float(scalars[2])
    length, width, heads = 128, 512, 8
    functional = torch.nn.functional

    def split(value: Any) -> Any:
        return value.view(1, length, heads, width // heads).transpose(1, 2)

    def run() -> Any:
        y = functional.layer_norm(x, (width,), eps=epsilon)
        parts = split(y @ q), split(y @ k), split(y @ v)
        mixed = functional.scaled_dot_product_attention(*parts, scale=factor)
        y = x + mixed.transpose(1, 2).reshape(length, width) @ mix
        return y + torch.tanh(functional.layer_norm(y, (width,), eps=epsilon) @ up) @ down

    return run


def convnet_torch(torch: Any, out: Any, x: Any, *rest: Any) -> Run:
    del out
    *kernels, dense, bias = rest
    layers = [(w, b.flatten()) for w, b in zip(kernels[::2], kernels[1::2], strict=True)]
    functional = torch.nn.functional

    def run() -> Any:
        y = x
        for number, (weight, offset) in enumerate(layers):
            y = torch.relu(functional.conv2d(y, weight, offset))
            y = functional.max_pool2d(y, 2) if number % 2 else y
        return torch.addmm(bias, y.flatten(1), dense)

    return run


def graph(name: str, by_torch: Callable[..., Run]) -> Work:
    graph = GRAPHS[name]()

    def inputs() -> list[Any]:
        """As in `memory.py`: small weights; scalars are the reciprocals that the graph multiplies by."""
        rng = np.random.default_rng(0)
        return [
            np.full(shape, 1 / 512, np.float32)
            if math.prod(shape) == 1
            else (rng.standard_normal(shape) / max(math.prod(shape[1:]), 1) ** 0.5).astype(np.float32)
            for shape in graph.inputs
        ]

    def by_numpy(out: Any, *arrays: Any) -> Run:
        del out
        from memory import evaluate

        return lambda: evaluate(graph, arrays)

    return Work(
        name,
        "models",
        lambda: module_text(graph),
        inputs,
        by_numpy,
        by_torch,
        numpy_is_peer=False,
        compiled=True,
        scales=True,
    )
