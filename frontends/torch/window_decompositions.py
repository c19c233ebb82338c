"""Decompositions of sums over windows that overlap, and of functions that windows of signals are weighted by."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from devscope.frontends.torch import matrix_operations
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor

_MOST_WINDOWS = 32
"""Windows that an element is in, at most, for which sums of all are written out."""


@TABLE.of(aten.col2im.default)
def _fold(
    x: _Tensor,
    output_size: list[int],
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Any:
    sizes: list[Any] = [*x.shape[1:]]
    if x.dtype.is_complex or not all(isinstance(size, int) for size in sizes):
        return NotImplemented
    places = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride, strict=True)
    ]
    outer = [*x.shape[:-2], x.shape[-2] // math.prod(kernel_size)]
    windows = x.reshape([math.prod(outer), *kernel_size, *places])
    images = matrix_operations.add_windows(windows, torch.empty([*stride, *dilation]))
    missing = [size + p - had for size, p, had in zip(output_size, padding, images.shape[1:], strict=True)]
    widths = [width for p, more in zip(padding[::-1], missing[::-1], strict=True) for width in (-p, more)]
    return aten.constant_pad_nd.default(images, widths).reshape([*outer, *output_size])


@TABLE.of(aten.unfold_backward.default)
def _add_windows(x: _Tensor, sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
    """Sums of windows where they overlap, as for `istft`: of the first parts of all, of the second ones and so on,
    each as long as a step. PyTorch's has an operation for each element of a window."""
    parts = -(-size // step)
    if x.dim() != len(sizes) + 1 or parts > _MOST_WINDOWS:
        return NotImplemented
    dim %= len(sizes)
    windows = _padded(x.movedim(-1, dim + 1), dim + 1, 0, parts * step - size)
    windows = windows.unflatten(dim + 1, (parts, step))
    # An element is added up from the first window that it is in on, as PyTorch does.
    shifted = [_padded(windows.select(dim + 1, n), dim, n, parts - 1 - n) for n in reversed(range(parts))]
    total = functools.reduce(torch.add, shifted).flatten(dim, dim + 1)
    if statically_known_true(sizes[dim] <= total.shape[dim]):
        total = total.narrow(dim, 0, sizes[dim])
    elif statically_known_true(sizes[dim] > total.shape[dim]):
        total = _padded(total, dim, 0, sizes[dim] - total.shape[dim])
    else:
        return NotImplemented
    return total.expand(sizes)


def _padded(x: _Tensor, dim: int, before: int, behind: Any) -> _Tensor:
    return aten.constant_pad_nd.default(x, [0, 0] * (x.dim() - 1 - dim) + [before, behind])


@TABLE.of(
    aten.hamming_window.default,
    aten.hamming_window.periodic,
    aten.hamming_window.periodic_alpha,
    aten.hamming_window.periodic_alpha_beta,
)
def _hamming_window(
    length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: Any = None, **_: Any
) -> Any:
    dtype = dtype or torch.get_default_dtype()
    if length == 1:
        return torch.ones(1, dtype=dtype)
    step = 2 * math.pi / (length if periodic else length - 1)
    return alpha - beta * torch.cos(torch.arange(length, dtype=dtype) * step)


@TABLE.of(aten.blackman_window.default, aten.blackman_window.periodic)
def _blackman_window(length: Any, periodic: bool = True, dtype: Any = None, **_: Any) -> Any:
    dtype = dtype or torch.get_default_dtype()
    if length == 1:
        return torch.ones(1, dtype=dtype)
    angles = torch.arange(length, dtype=dtype) * (2 * math.pi / (length if periodic else length - 1))
    return 0.42 - 0.5 * torch.cos(angles) + 0.08 * torch.cos(2 * angles)


@TABLE.of(aten.bartlett_window.default, aten.bartlett_window.periodic)
def _bartlett_window(length: Any, periodic: bool = True, dtype: Any = None, **_: Any) -> Any:
    dtype = dtype or torch.get_default_dtype()
    if length == 1:
        return torch.ones(1, dtype=dtype)
    last = length if periodic else length - 1
    return 1 - (torch.arange(length, dtype=dtype) * (2 / last) - 1).abs()
