"""Functions whose sizes ``torch.export`` takes as constants, for sizes that vary: series, windows, products."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch.backends import opt_einsum

_Tensor = torch.Tensor


def _varies(*values: Any) -> bool:
    return any(isinstance(value, torch.SymInt) for value in values)


def linspace(start: Any, end: Any, steps: Any = 100, *, dtype: Any = None, **options: Any) -> _Tensor:
    """From both ends to the middle, as PyTorch's."""
    if not _varies(steps) or options.get("out") is not None:
        return torch.linspace(start, end, steps, dtype=dtype, **options)
    dtype = dtype or torch.get_default_dtype()
    wide = dtype if dtype.is_floating_point or dtype.is_complex else torch.float64
    count, places = torch.scalar_tensor(steps, dtype=wide), torch.arange(steps)
    step = (end - start) / (count - 1)
    back = steps - 1 - places
    found = torch.where(places < back, start + step * places, end - step * back)
    return torch.where(count == 1, torch.full_like(found, start), found).to(dtype)


def logspace(
    start: Any, end: Any, steps: Any = 100, base: float = 10.0, *, dtype: Any = None, **options: Any
) -> _Tensor:
    if not _varies(steps) or options.get("out") is not None:
        return torch.logspace(start, end, steps, base, dtype=dtype, **options)
    found = torch.pow(base, linspace(start, end, steps, dtype=torch.float64))
    return found.to(dtype or torch.get_default_dtype())


def _cosines(angles: _Tensor, *factors: float) -> _Tensor:
    found = torch.full_like(angles, factors[0])
    for multiple, factor in enumerate(factors[1:], 1):
        found = found + factor * torch.cos(angles * multiple)
    return found


def _hann(turns: _Tensor) -> _Tensor:
    return _cosines(2 * math.pi * turns, 0.5, -0.5)


def _hamming(turns: _Tensor, alpha: float = 0.54, beta: float = 0.46) -> _Tensor:
    return _cosines(2 * math.pi * turns, alpha, -beta)


def _blackman(turns: _Tensor) -> _Tensor:
    return _cosines(2 * math.pi * turns, 0.42, -0.5, 0.08)


def _bartlett(turns: _Tensor) -> _Tensor:
    return 1 - (2 * turns - 1).abs()


def _kaiser(turns: _Tensor, beta: float = 12.0) -> _Tensor:
    inside = (1 - (2 * turns - 1) ** 2).clamp(min=0)
    return torch.special.i0(beta * inside.sqrt()) / torch.special.i0(torch.full((), beta, dtype=turns.dtype))


_WINDOWS: dict[Any, Callable[..., _Tensor]] = {
    torch.hann_window: _hann,
    torch.hamming_window: _hamming,
    torch.blackman_window: _blackman,
    torch.bartlett_window: _bartlett,
    torch.kaiser_window: _kaiser,
}
"""Of how far along a window is, from 0 to 1."""


def _window(original: Any, shape: Callable[..., _Tensor]) -> Callable[..., _Tensor]:
    def window(
        window_length: Any, periodic: bool = True, *factors: float, dtype: Any = None, **options: Any
    ) -> _Tensor:
        if not _varies(window_length) and original is not torch.kaiser_window:
            return original(window_length, periodic, *factors, dtype=dtype, **options)
        named = {name: options[name] for name in ("alpha", "beta") if name in options}
        of = dtype or torch.get_default_dtype()
        count = torch.scalar_tensor(window_length, dtype=of)
        turns = torch.arange(window_length, dtype=of) / (count if periodic else count - 1)
        return torch.where(count == 1, 1.0, shape(turns, *factors, **named)).to(of)

    return window


def kron(x: _Tensor, y: _Tensor) -> _Tensor:
    """With dimensions of both side by side, which then become one each."""
    if not _varies(*x.shape, *y.shape):
        return torch.kron(x, y)
    rank = max(x.dim(), y.dim())
    x, y = (one.reshape([1] * (rank - one.dim()) + list(one.shape)) for one in (x, y))
    for dim in range(rank):
        x, y = x.unsqueeze(2 * dim + 1), y.unsqueeze(2 * dim)
    return (x * y).reshape([x.shape[2 * dim] * y.shape[2 * dim + 1] for dim in range(rank)])


def _example_of(size: Any) -> int:
    """What a size is in the example; some number if it is not known."""
    return getattr(getattr(size, "node", None), "hint", size) or 1


class _Orders:
    """The part of ``opt_einsum`` that PyTorch calls, which looks which products are the smallest."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def contract_path(self, equation: str, *operands: _Tensor, optimize: Any) -> Any:
        shapes = [tuple(map(_example_of, operand.shape)) for operand in operands]
        return self._package.contract_path(equation, *shapes, shapes=True, optimize=optimize)


@contextmanager
def orders_of_examples() -> Generator[None]:
    """While it is entered, the order of the products of ``torch.einsum`` is that for the examples' sizes."""
    orders = _Orders(opt_einsum.get_opt_einsum())
    with mock.patch.object(opt_einsum, "get_opt_einsum", return_value=orders):
        yield


TRACED: dict[Any, Callable[..., Any]] = {
    torch.linspace: linspace,
    torch.logspace: logspace,
    torch.kron: kron,
    torch.Tensor.kron: kron,
    **{original: _window(original, shape) for original, shape in _WINDOWS.items()},
}
