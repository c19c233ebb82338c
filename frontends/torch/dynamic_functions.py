"""Functions whose sizes ``torch.export`` takes as constants, for sizes that vary.

They are series, windows, products, places in matrices, poolings along one dimension, distances.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
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


def _frequencies(original: Any, places: Callable[[Any], _Tensor]) -> Callable[..., _Tensor]:
    def frequencies(n: Any, d: float = 1.0, *, dtype: Any = None, **options: Any) -> _Tensor:
        if not _varies(n):
            return original(n, d, dtype=dtype, **options)
        dtype = dtype or torch.get_default_dtype()
        return places(n).to(dtype) / (torch.scalar_tensor(n, dtype=dtype) * d)

    return frequencies


def fill_diagonal(x: _Tensor, value: Any, wrap: bool = False) -> _Tensor:
    if x.dim() != 2 or not _varies(*x.shape):
        return x.fill_diagonal_(value, wrap)
    x.diagonal().fill_(value)
    return x


def _triangle(original: Any, keep: Callable[..., _Tensor]) -> Callable[..., _Tensor]:
    def indices(row: Any, col: Any, offset: int = 0, *, dtype: Any = torch.int64, **options: Any) -> _Tensor:
        if not _varies(row, col):
            return original(row, col, offset, dtype=dtype, **options)
        return keep(torch.ones(row, col, dtype=torch.bool), offset).nonzero().T.to(dtype)

    return indices


def vander(x: _Tensor, N: Any = None, increasing: bool = False) -> _Tensor:
    if not _varies(*x.shape, N):
        return torch.vander(x, N, increasing)
    powers = torch.arange(x.shape[-1] if N is None else N)
    return x[..., None] ** (powers if increasing else powers.flip(0))


def _rising_vander(x: _Tensor, *, N: Any = None) -> _Tensor:
    return vander(x, N, True)


def one_hot(x: _Tensor, num_classes: Any = -1) -> _Tensor:
    if not _varies(num_classes):
        return F.one_hot(x, num_classes)
    return (x[..., None] == torch.arange(num_classes)).to(torch.int64)


def affine_grid(theta: _Tensor, size: Any, align_corners: bool | None = None) -> _Tensor:
    if not _varies(*size):
        return F.affine_grid(theta, size, align_corners)

    def line(count: Any) -> _Tensor:
        """Of one element, PyTorch's is in the middle."""
        found = linspace(-1, 1, count, dtype=theta.dtype)
        return torch.where(
            torch.scalar_tensor(count) == 1, 0.0, found if align_corners else found * (count - 1) / count
        )

    axes = torch.meshgrid(*map(line, size[2:]), indexing="ij")[::-1]
    points = torch.stack([*axes, torch.ones_like(axes[0])], -1).flatten(0, -2)
    return (points @ theta.mT).unflatten(1, size[2:])


def max_pool1d(
    x: _Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """As that of an image of one row, where places are the same."""
    window = [kernel_size, stride or kernel_size, padding, dilation]
    options: Any = {"ceil_mode": ceil_mode, "return_indices": return_indices}
    if not _varies(x.shape[-1]):
        return F.max_pool1d(x, *window, **options)
    pairs: list[Any] = [
        (least, *one) if isinstance(one, tuple | list) else (least, one)
        for least, one in zip((1, 1, 0, 1), window, strict=True)
    ]
    found: Any = F.max_pool2d(x.unsqueeze(-2), *pairs, **options)
    return tuple(one.squeeze(-2) for one in found) if return_indices else found.squeeze(-2)


def cdist(
    x1: _Tensor, x2: _Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> _Tensor:
    """Which way is the faster for so many points PyTorch asks of their number."""
    if not _varies(*x1.shape, *x2.shape):
        return torch.cdist(x1, x2, p, compute_mode)
    return torch.cdist(x1, x2, p, "donot_use_mm_for_euclid_dist")


def mean(x: _Tensor, *arguments: Any, **named: Any) -> _Tensor:
    """PyTorch divides complex sums by a complex number, which is a constant."""
    if not x.is_complex() or not _varies(*x.shape) or named.get("out") is not None:
        return torch.mean(x, *arguments, **named)
    return torch.complex(torch.mean(x.real, *arguments, **named), torch.mean(x.imag, *arguments, **named))


def tensor_split(x: _Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Parts by places, of which there may be none: slices would say that there are some."""
    size = x.shape[dim]
    if not _varies(size) or isinstance(indices_or_sections, torch.Tensor):
        return torch.tensor_split(x, indices_or_sections, dim)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        inner = [number * (size // count) + torch.sym_min(number, size % count) for number in range(1, count)]
    else:
        inner = [torch.sym_min(place, size) if place >= 0 else size + place for place in indices_or_sections]
    return tuple(
        x.index_select(dim, torch.arange(torch.sym_max(end - start, 0)) + start)
        for start, end in zip([0, *inner], [*inner, size], strict=True)
    )


def _split_along(original: Any, dim: int) -> Callable[..., Any]:
    def split(x: _Tensor, indices_or_sections: Any) -> Any:
        along = 0 if dim == 1 and x.dim() == 1 else dim
        if not _varies(x.shape[along]):
            return original(x, indices_or_sections)
        return tensor_split(x, indices_or_sections, along)

    return split


def pdist(x: _Tensor, p: float = 2.0) -> _Tensor:
    if not _varies(x.shape[0]):
        return torch.pdist(x, p)
    one, other = TRACED[torch.triu_indices](x.shape[0], x.shape[0], 1)
    return torch.linalg.vector_norm(x.index_select(0, one) - x.index_select(0, other), p, -1)


def gradient(x: _Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Differences of neighbours; at both ends of two, or of three."""
    if not _varies(*x.shape):
        named = {} if dim is None else {"dim": dim}
        return torch.gradient(x, spacing=spacing, edge_order=edge_order, **named)
    dims = [*range(x.dim())] if dim is None else [dim] if isinstance(dim, int) else [*dim]
    spacings = [*spacing] if isinstance(spacing, tuple | list) else [spacing] * len(dims)
    return tuple(_slopes(x, one, step, edge_order) for one, step in zip(dims, spacings, strict=True))


def _slopes(x: _Tensor, dim: int, spacing: Any, edge_order: int) -> _Tensor:
    """``spacing`` is a number or the coordinates."""
    count, y = x.shape[dim], x.movedim(dim, -1)
    is_even = not isinstance(spacing, torch.Tensor) or spacing.dim() == 0
    steps = torch.full((count - 1,), 1.0, dtype=x.dtype) * spacing if is_even else spacing[1:] - spacing[:-1]
    slopes = (y[..., 1:] - y[..., :-1]) / steps
    left, right = steps[:-1], steps[1:]
    inner = (slopes[..., :-1] * right + slopes[..., 1:] * left) / (left + right)
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:
        first = first + (first - slopes[..., 1:2]) * steps[:1] / (steps[:1] + steps[1:2])
        last = last + (last - slopes[..., -2:-1]) * steps[-1:] / (steps[-1:] + steps[-2:-1])
    return torch.cat([first, inner, last], -1).movedim(-1, dim)


def multi_dot(tensors: Any) -> _Tensor:
    """The order of products is that for the examples' sizes."""
    first, *inner, last = tensors
    if not inner or not _varies(*(size for one in tensors for size in one.shape)):
        return torch.linalg.multi_dot(tensors)
    matrices = [first if first.dim() == 2 else first[None], *inner, last if last.dim() == 2 else last[:, None]]
    sizes = [*(_example_of(one.shape[0]) for one in matrices), _example_of(matrices[-1].shape[1])]

    @functools.cache
    def cost(start: int, end: int) -> tuple[int, int]:
        """Of the product of some, and behind which of them it is split."""
        if end - start == 1:
            return 0, start
        products = (
            (cost(start, at)[0] + cost(at, end)[0] + sizes[start] * sizes[at] * sizes[end], at)
            for at in range(start + 1, end)
        )
        return min(products)

    def product(start: int, end: int) -> _Tensor:
        if end - start == 1:
            return matrices[start]
        at = cost(start, end)[1]
        return product(start, at) @ product(at, end)

    found = product(0, len(matrices))
    return found.reshape([size for size, one in zip(found.shape, (first, last), strict=True) if one.dim() == 2])


def chain_matmul(*matrices: _Tensor) -> _Tensor:
    return multi_dot(matrices)


def _example_of(size: Any) -> int:
    """What a size is in the example; some number if it is not known."""
    return getattr(getattr(size, "node", None), "hint", size) or 1


def linear(x: _Tensor, weight: _Tensor, bias: _Tensor | None = None) -> _Tensor:
    """Of three dimensions, where derivatives are taken, PyTorch flattens two that are of known sizes."""
    if bias is None or x.dim() != 3 or not torch.is_grad_enabled() or not _varies(*x.shape):
        return F.linear(x, weight, bias)
    return F.linear(x, weight) + bias


def istft(
    x: _Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: _Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> _Tensor:
    """What frames give, cut where they are centred and as long as wanted."""
    options: list[Any] = [n_fft, hop_length, win_length, window]
    kind: list[Any] = [normalized, onesided]
    if not _varies(length):
        return torch.istft(x, *options, center, *kind, length, return_complex)
    found = torch.istft(x, *options, False, *kind, None, return_complex)
    start = n_fft // 2 if center else 0
    beyond: Any = torch.sym_max(start + length - found.shape[-1], 0)
    found = F.pad(found, (0, beyond))
    return found.index_select(-1, torch.arange(length) + start)


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
    torch.fft.fftfreq: _frequencies(torch.fft.fftfreq, lambda n: (torch.arange(n) + n // 2) % n - n // 2),
    torch.fft.rfftfreq: _frequencies(torch.fft.rfftfreq, lambda n: torch.arange(n // 2 + 1)),
    torch.Tensor.fill_diagonal_: fill_diagonal,
    torch.tril_indices: _triangle(torch.tril_indices, torch.tril),
    torch.triu_indices: _triangle(torch.triu_indices, torch.triu),
    torch.vander: vander,
    torch.linalg.vander: _rising_vander,
    F.one_hot: one_hot,
    F.affine_grid: affine_grid,
    F.max_pool1d: max_pool1d,
    torch.cdist: cdist,
    torch.tensor_split: tensor_split,
    torch.Tensor.tensor_split: tensor_split,
    **{
        getattr(of, name): _split_along(getattr(of, name), dim)
        for of in (torch, torch.Tensor)
        for dim, name in enumerate(("vsplit", "hsplit", "dsplit"))
    },
    F.linear: linear,
    torch.istft: istft,
    torch.Tensor.istft: istft,
    torch.gradient: gradient,
    torch.pdist: pdist,
    torch.linalg.multi_dot: multi_dot,
    torch.chain_matmul: chain_matmul,
    torch.mean: mean,
    torch.Tensor.mean: mean,
    **{original: _window(original, shape) for original, shape in _WINDOWS.items()},
}
