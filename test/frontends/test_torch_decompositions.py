"""Forms of PyTorch's operations that torch-mlir does not take: by decompositions of ours, as eager."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope

torch = pytest.importorskip("torch")
F = torch.nn.functional

_PLACES = torch.tensor([[[0, 1], [2, 3], [1, 0]]] * 2)


def _random(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def _scatters(x: Any, index: Any, source: Any) -> Any:
    return (
        x.scatter(-1, index, source),
        x.scatter(-1, index, 1.5),
        x.scatter_add(-2, index % 3, source),
        x.scatter_reduce(-1, index, source, "amax"),
        x.scatter(-1, index, source, reduce="add"),
        x.scatter(2, index, 2.0, reduce="multiply"),
    )


def _paddings(x: Any) -> Any:
    return F.pad(x, (-1, 2, 1, -2), value=2.0), F.pad(x, (-1, -1)), F.pad(x, (0, 1, -2, 0))


def _pools(x: Any) -> Any:
    return (
        *F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        *F.adaptive_max_pool1d(x[:, 0], 3, return_indices=True),
        *F.adaptive_max_pool3d(x, (2, 4, 3), return_indices=True),
        F.adaptive_max_pool2d(x, (3, 4)),
    )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_scatters, (_random(2, 3, 4), _PLACES, _random(2, 3, 2))),
        (_paddings, (_random(2, 5, 6),)),
        (lambda x: F.fold(x, (8, 8), 3, padding=1, stride=2), (_random(1, 18, 16),)),
        (_pools, (_random(2, 3, 9, 8),)),
        (_pools, (torch.where(_random(2, 3, 9, 8) > 1.5, torch.nan, _random(2, 3, 9, 8).round()),)),
    ],
    ids=["scatters", "paddings", "fold", "pools", "pools of NaN and equals"],
)
def test_as_eager(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    module = _Module(function).eval()
    expected = module(*arguments)
    found = devscope.compile(module, arguments, default="cpu:0", cache=False)(*arguments)
    pairs = [(found, expected)] if isinstance(expected, torch.Tensor) else zip(found, expected, strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6)
