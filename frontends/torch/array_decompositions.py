"""Decompositions of norms and writes, of which PyTorch has none that is right and can be imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from devscope.frontends.torch import matrix_operations
from devscope.frontends.torch.own_decompositions import float_dtype
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
TABLE = Table()
_Tensor = torch.Tensor


@TABLE.of(aten.native_group_norm.default)
def _group_norm(
    x: _Tensor,
    weight: _Tensor | None,
    bias: _Tensor | None,
    batch: Any,
    channels: int,
    size: Any,
    groups: int,
    epsilon: float,
) -> Any:
    """PyTorch's has ``as_strided``, which torch-mlir only imports with sizes that are known."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    grouped = wide.reshape(batch, groups, channels // groups, size)
    variance, mean = torch.var_mean(grouped, [2, 3], correction=0, keepdim=True)
    inverse = torch.rsqrt(variance + epsilon)
    scale = inverse if weight is None else inverse * weight.reshape(groups, channels // groups, 1)
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias.reshape(groups, channels // groups, 1)
    found = (grouped * scale + shift).reshape(x.shape)
    return found.to(x.dtype), mean.flatten(1).to(x.dtype), inverse.flatten(1).to(x.dtype)


@TABLE.of(aten.multilabel_margin_loss_forward.default)
def _multilabel_margin_loss(x: _Tensor, target: _Tensor, reduction: int) -> Any:
    """PyTorch's takes what is behind the end of the labels for labels."""
    places = torch.arange(target.shape[-1])
    ends = torch.where(target < 0, places, target.shape[-1]).amin(-1, keepdim=True)
    is_label = places < ends
    chosen = x.gather(-1, torch.where(is_label, target, 0))
    is_target = (is_label[..., None] & (target[..., None] == places)).any(-2)
    apart = (1 - chosen[..., :, None] + x[..., None, :]).clamp(min=0)
    counts = is_label[..., :, None] & ~is_target[..., None, :]
    loss = torch.where(counts, apart, 0).sum((-2, -1)) / x.shape[-1]
    loss = loss.mean() if reduction == 1 else loss.sum() if reduction == 2 else loss
    return loss, is_target.to(x.dtype)


@TABLE.of(aten.roll.default)
def _roll(x: _Tensor, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """torch-mlir takes a shift for less than what it moves, and more than nothing."""
    if not dims:
        return _roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent: Any = x.shape[dim]
        if not isinstance(extent, int) or not isinstance(shift, int):
            x = x.index_select(dim, (torch.arange(extent) - shift) % extent)
        elif extent and (back := -shift % extent):
            x = torch.cat([x.narrow(dim, back, extent - back), x.narrow(dim, 0, back)], dim)
    return x.clone()


# Writes.


@TABLE.of(aten.index_reduce.default)
def _index_reduce(
    x: _Tensor, dim: int, index: _Tensor, source: _Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    shape = [1] * x.dim()
    shape[dim] = -1
    everywhere = index.to(torch.int64).reshape(shape).expand(source.shape)
    return x.scatter_reduce(dim, everywhere, source, reduce, include_self=include_self)


def _with_wide_indices(overload: Any) -> None:
    """torch-mlir's lists of indices are of int64 only."""
    narrow = (torch.int32, torch.int16, torch.int8)

    def indexed(x: _Tensor, indices: Sequence[Any], *others: Any) -> Any:
        if not any(index is not None and index.dtype in narrow for index in indices):
            return NotImplemented
        wide = [
            index.to(torch.int64) if index is not None and index.dtype in narrow else index for index in indices
        ]
        return overload(x, wide, *others)

    TABLE[overload] = indexed


for _overload in (aten.index.Tensor, aten.index_put.default, aten._unsafe_index.Tensor):
    _with_wide_indices(_overload)


@TABLE.of(aten.put.default)
def _put(x: _Tensor, index: _Tensor, source: _Tensor, accumulate: bool = False) -> Any:
    flat = x.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


@TABLE.of(aten.diagonal_scatter.default)
def _diagonal_scatter(x: _Tensor, source: _Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = torch.arange(moved.shape[-2])[:, None], torch.arange(moved.shape[-1])
    places = (rows[:, 0] + min(offset, 0)).clamp(0, source.shape[-1] - 1)
    found = torch.where(columns - rows == offset, source.index_select(-1, places)[..., None], moved)
    return found.movedim((-2, -1), (dim1, dim2))


@TABLE.of(aten.block_diag.default)
def _block_diag(blocks: Sequence[_Tensor]) -> Any:
    blocks = [torch.atleast_2d(block) for block in blocks]
    width, before, rows = sum(block.shape[1] for block in blocks), 0, list[_Tensor]()
    for block in blocks:
        rows.append(aten.constant_pad_nd.default(block, [before, width - before - block.shape[1]]))
        before += block.shape[1]
    return torch.cat(rows)


def _memory_order(x: _Tensor) -> list[int] | None:
    """The dimensions from the one of the largest steps to that of the least; None where elements do not stand
    side by side."""
    steps = {dim: step for dim, step in enumerate(x.stride()) if not statically_known_true(x.shape[dim] == 1)}
    order, expected = [dim for dim in range(x.dim()) if dim not in steps], 1
    found: list[int] = []
    while steps:
        dim = next((dim for dim, step in steps.items() if statically_known_true(step == expected)), None)
        if dim is None:
            return None
        found.insert(0, dim)
        expected = expected * x.shape[dim]
        del steps[dim]
    return order + found


def _places(size: Sequence[Any], stride: Sequence[Any], offset: Any) -> _Tensor:
    places = torch.full((), offset or 0)
    for extent, step in zip(size, stride, strict=True):
        places = places[..., None] + step * torch.arange(extent)
    return places.reshape(-1)


@TABLE.of(aten.as_strided.default)
def _as_strided(x: _Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any = None) -> Any:
    """Of sizes that torch-mlir imports as numbers only: ``x`` itself, or elements of its memory."""
    if all(isinstance(number, int) for number in (*x.shape, *size, *stride, offset or 0)):
        return NotImplemented
    steps = zip(x.shape, size, x.stride(), stride, strict=True) if x.dim() == len(size) else [(0, 1, 0, 0)]
    if not offset and all(
        statically_known_true(one == other) and (statically_known_true(one == 1) or statically_known_true(a == b))
        for one, other, a, b in steps
    ):
        return x.clone()
    order = _memory_order(x)
    if order is None:
        return NotImplemented
    return x.permute(order).reshape(-1).index_select(0, _places(size, stride, offset)).reshape(size)


@TABLE.of(aten.as_strided_scatter.default)
def _as_strided_scatter(
    x: _Tensor, source: _Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> Any:
    order = _memory_order(x)
    if order is None:
        return NotImplemented
    memory = x.permute(order)
    found = memory.reshape(-1).index_put([_places(size, stride, offset)], source.reshape(-1))
    return found.reshape(memory.shape).permute([order.index(dim) for dim in range(x.dim())])


# Poolings without a batch, which end torch-mlir's passes or have no lowering.


def _with_batch(overload: Any, spatial: int) -> None:
    def pool(x: _Tensor, *others: Any, **named: Any) -> Any:
        if x.dim() != spatial + 1:
            return NotImplemented
        found = overload(x[None], *others, **named)
        return tuple(one[0] for one in found) if isinstance(found, tuple) else found[0]

    TABLE[overload] = pool


for _overload in (aten.avg_pool2d.default, aten.max_pool2d.default, aten.max_pool2d_with_indices.default):
    _with_batch(_overload, 2)
for _overload in (aten.avg_pool3d.default, aten.max_pool3d_with_indices.default):
    _with_batch(_overload, 3)
for _overload in (aten.avg_pool1d.default, aten.max_pool1d.default):
    _with_batch(_overload, 1)


# Integers and functions of numbers.


@TABLE.of(aten.gcd.default, torch.ops.prims.gcd.default)
def _gcd(x: _Tensor, y: _Tensor) -> Any:
    """Euclid's; of numbers of n bits are at most 1.44 n steps (Lame). The least number is no positive one."""
    x, y = torch.broadcast_tensors(x.abs(), y.abs())
    for _ in range(math.ceil(1.4405 * torch.iinfo(x.dtype).bits)):
        rest = torch.remainder(x, torch.where(y == 0, 1, y))
        x, y = torch.where(y == 0, x, y), torch.where(y == 0, 0, rest)
    return x.abs()


@TABLE.of(aten.mode.default)
def _mode(x: _Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The least of the values that are there most often, and the last place that has it."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if x.dtype is torch.bool:
        values, places = _mode(x.to(torch.int8), dim, keepdim)
        return values.to(torch.bool), places
    moved = x.movedim(dim, -1)
    counts = (moved[..., :, None] == moved[..., None, :]).sum(-1)
    is_most = counts == counts.amax(-1, keepdim=True)
    high = math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).max
    value = torch.where(is_most, moved, high).amin(-1, keepdim=True)
    place = torch.where(moved == value, torch.arange(moved.shape[-1]), -1).amax(-1, keepdim=True)
    found = value.movedim(-1, dim), place.movedim(-1, dim)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


@TABLE.of(aten.histc.default)
def _histogram(x: _Tensor, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    """If the limits are equal, they are those of the data. Parts are counted side by side."""
    x = x.reshape(-1)
    least, most = torch.full((), low, dtype=x.dtype), torch.full((), high, dtype=x.dtype)
    if low == high:
        least, most = x.amin(), x.amax()
        least, most = torch.where(least == most, least - 1, least), torch.where(least == most, most + 1, most)
    place = torch.floor((x - least) * bins / (most - least)).clamp(max=bins - 1)
    place = torch.where((x >= least) & (x <= most), place.to(torch.int64), bins)
    count: Any = x.shape[0]
    parts = 1
    if isinstance(count, int):
        parts = next((n for n in (64, 16, 4) if count % n == 0 and count >= 4 * n * bins), 1)
    place = place.reshape(parts, -1, 1)
    counts = torch.zeros([parts, bins + 1, 1], dtype=torch.int32)
    counts = matrix_operations.SCATTERS["sum"](counts, place, torch.ones_like(place, dtype=torch.int32))
    return counts.sum(0)[:bins, 0].to(x.dtype)


@TABLE.of(aten.histogram.bin_ct)
def _histogram_with_edges(
    x: _Tensor, bins: int = 100, *, range: Any = None, weight: _Tensor | None = None, density: bool = False
) -> Any:
    if weight is not None:
        return NotImplemented
    x = x.reshape(-1)
    steps = torch.arange(bins + 1, dtype=x.dtype) / bins
    if range is None or range[0] == range[1]:
        least, most = (
            (x.amin(), x.amax()) if range is None else (torch.full((), end, dtype=x.dtype) for end in range)
        )
        least, most = torch.where(least == most, least - 1, least), torch.where(least == most, most + 1, most)
        edges = torch.cat([(least + (most - least) * steps)[:-1], most.reshape(1)])
    else:
        edges = torch.linspace(range[0], range[1], bins + 1, dtype=x.dtype)
    is_there = (x >= edges[:-1, None]) & (x < edges[1:, None])
    last = (torch.arange(bins) == bins - 1)[:, None] & (x == edges[-1])
    found = (is_there | last).sum(1).to(x.dtype)
    if density:
        found = found / found.sum() / edges.diff()
    return found, edges


@TABLE.of(aten.nonzero_static.default)
def _first_nonzero(x: _Tensor, *, size: int, fill_value: int = -1) -> Any:
    """``size`` places, in order; those that are too many are put where nobody looks."""
    mask = x.reshape(-1) != 0
    count: Any = mask.shape[0]
    if statically_known_true(count == 0):
        return torch.full((size, x.dim()), fill_value)
    place = mask.to(torch.int64).cumsum(0) - 1
    place = torch.where(mask & (place < size), place, size)
    found = torch.zeros(size + 1, dtype=torch.int64).scatter(0, place, torch.arange(count))[:size]
    rows: list[_Tensor] = []
    for extent in reversed(x.shape):
        rows.append(found % extent)
        found = found // extent
    there = torch.arange(size)[:, None] < mask.sum()
    return torch.where(there, torch.stack(rows[::-1], 1), fill_value)


@TABLE.of(prims.frexp.default)
def _frexp(x: _Tensor) -> Any:
    """Scaled by powers of two, the largest first, until the size is in [1, 2)."""
    sizes = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] if x.dtype == torch.float64 else [64, 32, 16, 8, 4, 2, 1]
    is_number = torch.isfinite(x) & (x != 0)
    found, exponent = torch.where(is_number, x, 1.0), torch.ones_like(x, dtype=torch.int32)
    for size in sizes:
        is_large = found.abs() >= 2.0**size
        found = torch.where(is_large, found * 2.0**-size, found)
        exponent = torch.where(is_large, exponent + size, exponent)
    for size in [sizes[0], *sizes]:
        is_small = found.abs() < 2.0 ** (1 - size)
        found = torch.where(is_small, found * 2.0**size, found)
        exponent = torch.where(is_small, exponent - size, exponent)
    return torch.where(is_number, found / 2, x), torch.where(is_number, exponent, 0)


@TABLE.of(aten.fake_quantize_per_channel_affine.default)
def fake_quantize(x: _Tensor, scale: _Tensor, zero: _Tensor, axis: int, least: int, most: int) -> Any:
    shape = [1] * x.dim()
    shape[axis] = -1
    scale, zero = scale.reshape(shape), zero.reshape(shape)
    number = torch.round(x * (1 / scale)) + zero
    number = torch.where(torch.isnan(number), least, number)
    return (number.clamp(least, most) - zero) * scale


@TABLE.of(aten.special_erfcx.default)
def _erfcx(x: _Tensor) -> Any:
    """(1 - erf(x)) exp(x * x): from 2 on by its continued fraction, whose terms are n / 2."""
    wide = x.double()
    far, near = wide.clamp(min=2), wide.clamp(max=2)
    fraction = far
    for term in range(60, 0, -1):
        fraction = far + term / 2 / fraction
    low, high = torch.exp(near * near) * torch.erfc(near), 1 / (math.sqrt(math.pi) * fraction)
    return torch.where(wide < 2, low, high).to(float_dtype(x))


@TABLE.of(aten.special_log_ndtr.default)
def _log_ndtr(x: _Tensor) -> Any:
    """Below -1 by the scaled complement of the error function, which does not become zero."""
    scaled = x * math.sqrt(0.5)
    low = torch.log(torch.special.erfcx(-scaled) / 2) - scaled * scaled
    return torch.where(x < -1, low, torch.log1p(-torch.erfc(scaled) / 2))


@TABLE.of(aten._pdist_forward.default)
def _pdist(x: _Tensor, p: float = 2) -> Any:
    count: Any = x.shape[0]
    if not isinstance(count, int):
        return NotImplemented
    one, other = torch.triu_indices(count, count, 1)
    return torch.linalg.vector_norm(x.index_select(0, one) - x.index_select(0, other), p, -1)
