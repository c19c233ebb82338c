"""Decompositions of what autograd computes gradients with, which PyTorch has kernels for and torch-mlir lacks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_MEAN, _MAX = 1, 2


@TABLE.of(aten.convolution_backward.default)
def _convolution(
    grad: _Tensor,
    x: _Tensor,
    weight: _Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[_Tensor | None, ...]:
    spatial = range(weight.dim() - 2)
    stride, padding, dilation = (_each(given, len(spatial)) for given in (stride, padding, dilation))
    of_x = of_weight = of_bias = None
    if output_mask[0]:
        rest = [0] * len(spatial)
        if not transposed:
            reached = [
                (grad.shape[dim + 2] - 1) * stride[dim]
                - 2 * padding[dim]
                + dilation[dim] * (weight.shape[dim + 2] - 1)
                for dim in spatial
            ]
            rest = [x.shape[dim + 2] - 1 - reached[dim] for dim in spatial]
        of_x = aten.convolution(grad, weight, None, stride, padding, dilation, not transposed, rest, groups)
    if output_mask[1]:
        of_weight = _of_weight(
            *((grad, x) if transposed else (x, grad)), weight.shape, stride, padding, dilation, groups
        )
    if output_mask[2]:
        of_bias = grad.sum([0, *(dim + 2 for dim in spatial)])
    return of_x, of_weight, of_bias


def _of_weight(
    read: _Tensor,
    written: _Tensor,
    shape: Sequence[Any],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> _Tensor:
    """Of one group: a convolution of what was read with what was written, stride and dilation in turn.

    Of several: for each element of the filter a product of what it met, for each group.
    """
    if groups == 1:
        none = [0] * len(stride)
        given = read.transpose(0, 1), written.transpose(0, 1)
        found = aten.convolution(*given, None, dilation, padding, stride, False, none, 1)
        for dim, size in enumerate(shape[2:], 2):
            found = found.narrow(dim, 0, size)
        return found.transpose(0, 1)
    read = F.pad(read, [pad for each in reversed(padding) for pad in (each, each)])
    parts: list[_Tensor] = []
    by_group = _by_group(written, groups)
    for place in itertools.product(*map(range, shape[2:])):
        met = read
        for dim, at in enumerate(place):
            first = at * dilation[dim]
            end = first + (written.shape[dim + 2] - 1) * stride[dim] + 1
            met = aten.slice.Tensor(met, dim + 2, first, end, stride[dim])
        parts.append((by_group @ _by_group(met, groups).mT).flatten(0, 1))
    return torch.stack(parts, -1).reshape(shape)


def _by_group(x: _Tensor, groups: int) -> _Tensor:
    """Channels of each group, all samples of each."""
    return x.movedim(0, 1).flatten(1).unflatten(0, [groups, x.shape[1] // groups])


@TABLE.of(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _attention(
    grad: _Tensor,
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    out: _Tensor,
    logsumexp: _Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: _Tensor | None = None,
    scale: float | None = None,
) -> tuple[_Tensor, _Tensor, _Tensor]:
    """The scores are computed again: what PyTorch decomposes attention into has no ``logsumexp``."""
    groups = query.shape[1] // key.shape[1]
    keys, values = (each.repeat_interleave(groups, 1) if groups > 1 else each for each in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ keys.mT) * factor
    if is_causal:
        rows, columns = (torch.arange(size) for size in scores.shape[-2:])
        scores = scores.masked_fill(columns > rows[:, None], -torch.inf)
    if attn_mask is not None:
        added = attn_mask
        if attn_mask.dtype == torch.bool:
            added = torch.where(attn_mask, 0.0, -torch.inf).to(scores.dtype)
        scores = scores + added
    weights = aten._safe_softmax(scores, -1)
    of_weights = grad @ values.mT
    of_scores = weights * (of_weights - (grad * out).sum(-1, True)) * factor
    of_key, of_value = of_scores.mT @ query, weights.mT @ grad
    if groups > 1:
        of_key, of_value = (each.unflatten(1, (-1, groups)).sum(2) for each in (of_key, of_value))
    return of_scores @ keys, of_key, of_value


def _each(given: Sequence[int], rank: int) -> list[int]:
    return [*given] * (rank if len(given) == 1 else 1)


def _adjoint(grad: _Tensor, sizes: Sequence[Any], function: Callable[[_Tensor, int], _Tensor]) -> _Tensor:
    """The gradient of a linear function that goes along each of the last dimensions, of ``sizes``, by itself.

    What it makes of unit vectors is its matrix: it is given them as channels of one sample, and the dimension.
    """
    for number, size in enumerate(sizes):
        dim = number - len(sizes)
        matrix = function(torch.eye(size, dtype=grad.dtype)[None], number)[0]
        grad = (grad.movedim(dim, -1) @ matrix.T).movedim(-1, dim)
    return grad


def _nearest(rank: int, function: Any) -> Callable[..., _Tensor]:
    def nearest(grad: _Tensor, sizes: Sequence[Any], given: Sequence[Any], *scales: Any) -> _Tensor:
        scales = scales or (None,) * rank
        return _adjoint(grad, given[2:], lambda units, dim: function(units, [sizes[dim]], scales[dim]))

    return nearest


def _interpolated(rank: int, function: Any) -> Callable[..., _Tensor]:
    """Of a ``function`` of images."""

    def interpolated(
        grad: _Tensor, sizes: Sequence[Any], given: Sequence[Any], align: bool, *scales: Any
    ) -> _Tensor:
        scales = scales or (None,) * rank

        def along(units: _Tensor, dim: int) -> _Tensor:
            return function(units[:, :, None], [1, sizes[dim]], align, None, scales[dim])[:, :, 0]

        return _adjoint(grad, given[2:], along)

    return interpolated


def _linear(rank: int) -> None:
    """Register the gradients of pooling, interpolation and padding of ``rank`` dimensions."""

    def average(
        grad: _Tensor,
        x: _Tensor,
        windows: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor: int | None,
    ) -> _Tensor:
        windows, strides, padding = (_each(given, rank) for given in (windows, strides or windows, padding))
        one = 1 if divisor else None

        def pooled(units: _Tensor, dim: int) -> _Tensor:
            sizes = [1, windows[dim]], [1, strides[dim]], [0, padding[dim]]
            return aten.avg_pool2d(units[:, :, None], *sizes, ceil_mode, count_include_pad, one)[:, :, 0]

        return _adjoint(grad if divisor is None else grad / divisor, x.shape[-rank:], pooled)

    def adaptive_average(grad: _Tensor, x: _Tensor) -> _Tensor:
        counts = grad.shape[-rank:]
        return _adjoint(grad, x.shape[-rank:], lambda units, dim: F.adaptive_avg_pool1d(units, counts[dim]))

    def repeated_border(grad: _Tensor, x: _Tensor, padding: Sequence[int]) -> _Tensor:
        pads = [[*padding[2 * dim : 2 * dim + 2]] for dim in reversed(range(rank))]
        return _adjoint(grad, x.shape[-rank:], lambda units, dim: F.pad(units, pads[dim], "replicate"))

    TABLE[_backward(f"replication_pad{rank}d")] = repeated_border
    TABLE[_backward(f"upsample_nearest{rank}d")] = _nearest(rank, aten.upsample_nearest1d.default)
    TABLE[_backward(f"_upsample_nearest_exact{rank}d")] = _nearest(rank, aten._upsample_nearest_exact1d.default)
    TABLE[_backward(f"upsample_{('linear', 'bilinear', 'trilinear')[rank - 1]}{rank}d")] = _interpolated(
        rank, aten.upsample_bilinear2d.default
    )
    if rank > 1:
        TABLE[_backward(f"avg_pool{rank}d")] = average
        TABLE[_backward(f"_adaptive_avg_pool{rank}d")] = adaptive_average
    if rank == 2:
        TABLE[_backward("upsample_bicubic2d")] = _interpolated(rank, aten.upsample_bicubic2d.default)
        for kind in ("bilinear", "bicubic"):
            smooth = f"_upsample_{kind}2d_aa"
            TABLE[_backward(smooth)] = _interpolated(rank, getattr(aten, smooth).default)


def _backward(name: str) -> Any:
    return getattr(aten, f"{name}_backward").default


def _largest(rank: int) -> None:
    """Register gradients of the largest elements; where these are in an image or a volume is the last argument."""

    def largest(grad: _Tensor, x: _Tensor, *others: Any) -> _Tensor:
        places: _Tensor = others[-1]
        flat = torch.zeros_like(x).flatten(-rank)
        return flat.scatter_add(-1, places.flatten(-rank), grad.flatten(-rank)).reshape(x.shape)

    for name in ("max_pool{}d_with_indices", "adaptive_max_pool{}d", "fractional_max_pool{}d"):
        TABLE[_backward(name.format(rank))] = largest


for _rank in (1, 2, 3):
    _linear(_rank)
    if _rank > 1:
        _largest(_rank)


@TABLE.of(aten.hardshrink_backward.default, aten.softshrink_backward.default)
def _shrunk(grad: _Tensor, x: _Tensor, limit: float) -> _Tensor:
    return torch.where(x.abs() <= limit, 0.0, grad)


@TABLE.of(aten._weight_norm_interface_backward.default)
def _weight_norm(grad: _Tensor, v: _Tensor, g: _Tensor, norms: _Tensor, dim: int) -> tuple[_Tensor, _Tensor]:
    others = [each for each in range(v.dim()) if each != dim]
    along = (grad * v).sum(others, True) / norms
    return g / norms * (grad - v * along / norms), along


@TABLE.of(aten._cdist_backward.default)
def _distances(grad: _Tensor, one: _Tensor, other: _Tensor, p: float, distances: _Tensor) -> _Tensor:
    """Of the first; autograd asks for that of the other as if they were swapped."""
    apart = one.unsqueeze(-2) - other.unsqueeze(-3)
    if p == 0:
        return torch.zeros_like(one)
    distance, signs = distances.unsqueeze(-1), apart.sign()
    if math.isinf(p):
        parts = torch.where(apart.abs() == distance, signs, 0.0)
    elif p == 1:
        parts = signs
    else:
        parts = torch.where(distance == 0, 0.0, signs * (apart.abs() / distance) ** (p - 1))
    return (grad.unsqueeze(-1) * parts).sum(-2)


@TABLE.of(aten._embedding_bag_backward.default)
def _bags(
    grad: _Tensor,
    indices: _Tensor,
    offsets: _Tensor,
    bag: _Tensor,
    sizes: _Tensor,
    largest: _Tensor,
    count: Any,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: _Tensor | None,
    padding_idx: int = -1,
) -> _Tensor:
    zeros = torch.zeros([count, grad.shape[1]], dtype=grad.dtype)
    if mode == _MAX:
        return zeros.scatter_add(0, largest, torch.where(sizes[:, None] > 0, grad, 0.0))
    if mode == _MEAN:
        grad = grad / sizes.clamp(min=1)[:, None].to(grad.dtype)
    rows = grad.index_select(0, bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        often = torch.zeros([count], dtype=grad.dtype).index_add(0, indices, torch.ones_like(rows[:, 0]))
        rows = rows / often.index_select(0, indices)[:, None]
    if padding_idx >= 0:
        rows = torch.where((indices != padding_idx)[:, None], rows, 0.0)
    return zeros.index_add(0, indices, rows)


@TABLE.of(aten._embedding_bag_per_sample_weights_backward.default)
def _weights_of_bags(
    grad: _Tensor,
    weight: _Tensor,
    indices: _Tensor,
    offsets: _Tensor,
    bag: _Tensor,
    mode: int,
    padding_idx: int = -1,
) -> _Tensor:
    products = (grad.index_select(0, bag) * weight.index_select(0, indices)).sum(1)
    return products if padding_idx < 0 else torch.where(indices != padding_idx, products, 0.0)
