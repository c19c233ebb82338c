"""Decompositions of samplings of volumes and of interpolations.

PyTorch and torch-mlir lack some; of the others torch-mlir looks for the place of every element of a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_BILINEAR, _NEAREST = 0, 1
_BORDER, _REFLECTION = 1, 2


def _places(coordinate: _Tensor, size: Any, padding: int, align: bool) -> _Tensor:
    """From -1 to 1, where the corners are or where the first and last elements begin, to numbers of elements."""
    place = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
    if padding == _REFLECTION:
        low, span = (0.0, size - 1) if align else (-0.5, size)
        if align and size == 1:
            return torch.zeros_like(place)
        away = (place - low).abs()
        over, times = torch.fmod(away, span), torch.floor(away / span)
        place = torch.where(torch.fmod(times, 2) == 0, over + low, span - over + low)
    if padding not in (_BORDER, _REFLECTION):
        return place
    return torch.where(torch.isnan(place), size - 1, place).clamp(0, size - 1)


def _grid_sample_3d(x: _Tensor, grid: _Tensor, interpolation: int, padding: int, align: bool) -> Any:
    """As in ATen/native/GridSampler.cpp: of each place eight elements, or the nearest."""
    sizes = x.shape[2:]
    places = [_places(grid[..., 2 - dim], sizes[dim], padding, align) for dim in range(3)]

    def elements(corner: Sequence[_Tensor]) -> tuple[_Tensor, _Tensor]:
        is_inside, flat = (
            torch.ones_like(corner[0], dtype=torch.bool),
            torch.zeros_like(corner[0], dtype=torch.int64),
        )
        for one, size in zip(corner, sizes, strict=True):
            is_here = (one >= 0) & (one < size)
            is_inside = is_inside & is_here
            flat = flat * size + torch.where(is_here, one, 0).to(torch.int64)
        index = flat.flatten(1)[:, None].expand(-1, x.shape[1], -1)
        found = x.flatten(2).gather(2, index).reshape(*x.shape[:2], *corner[0].shape[1:])
        return found, is_inside[:, None]

    if interpolation == _NEAREST:
        found, is_inside = elements([place.round() for place in places])
        return torch.where(is_inside, found, 0)
    lows = [torch.floor(place) for place in places]
    total = torch.zeros((), dtype=x.dtype)
    for corner in product((0, 1), repeat=3):
        weight = torch.ones((), dtype=x.dtype)
        for place, low, step in zip(places, lows, corner, strict=True):
            weight = weight * (place - low if step else low + 1 - place)
        found, is_inside = elements([low + step for low, step in zip(lows, corner, strict=True)])
        total = total + torch.where(is_inside, found * weight[:, None], 0)
    return total


_Taps = Callable[[_Tensor, int], list[tuple[_Tensor, _Tensor | None]]]
"""Of places, floats, in so many elements: the elements beside each, and their weights if there are several."""


def _nearest(places: _Tensor, size: int) -> list[tuple[_Tensor, _Tensor | None]]:
    return [(places.floor().clamp(max=size - 1), None)]


def _between_two(places: _Tensor, size: int) -> list[tuple[_Tensor, _Tensor | None]]:
    places = places.clamp(min=0)
    low = places.floor().clamp(max=size - 1)
    weight = (places - low).clamp(0, 1)
    return [(low, 1 - weight), ((low + 1).clamp(max=size - 1), weight)]


def _keys(x: _Tensor, a: float) -> tuple[_Tensor, _Tensor]:
    """Keys' cubic kernel (1981), of distances up to 1, and of those from 1 to 2."""
    return ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _between_four(places: _Tensor, size: int) -> list[tuple[_Tensor, _Tensor | None]]:
    """get_cubic_upsample_coefficients of UpSample.h."""
    low = places.floor()
    found: list[tuple[_Tensor, _Tensor | None]] = []
    for step in (-1, 0, 1, 2):
        near, far = _keys((places - low - step).abs(), -0.75)
        found.append(((low + step).clamp(0, size - 1), near if step in (0, 1) else far))
    return found


def _along(x: _Tensor, dim: int, places: _Tensor, taps: _Taps) -> _Tensor:
    total: Any = None
    for index, weight in taps(places, x.shape[dim]):
        part = x.index_select(dim, index.to(torch.int64))
        if weight is not None:
            part = part * weight.reshape([-1 if axis == dim else 1 for axis in range(x.dim())])
        total = part if total is None else total + part
    return total


def _interpolation(taps: _Taps, offset: float = 0.5) -> Callable[..., Any]:
    """One dimension after the other, the last first, as in UpSampleKernel.cpp; places are computed as there."""

    def interpolate(x: _Tensor, sizes: Sequence[Any], *rest: Any) -> Any:
        is_nearest = taps is _nearest
        align, factors = (False, rest) if is_nearest else (rest[0], rest[1:])
        known = [*x.shape[2:], *sizes]  # others are looked for as the program runs
        if not all(type(size) is int and size > 0 for size in known) or not (is_nearest or x.is_floating_point()):
            return NotImplemented
        wide = torch.float64 if x.dtype == torch.float64 and not is_nearest else torch.float32
        y = x if is_nearest else x.to(wide)
        for dim in reversed(range(2, x.dim())):
            count, size = sizes[dim - 2], x.shape[dim]
            factor = factors[dim - 2] if dim - 2 < len(factors) else None
            step = (size - 1) / max(count - 1, 1) if align else 1 / factor if factor else size / count
            if count == size and step == 1 and taps is not _between_four:
                continue
            if is_nearest and step * count == size and count % size == 0:
                y = y.unsqueeze(dim + 1).expand(*y.shape[: dim + 1], count // size, *y.shape[dim + 1 :])
                y = y.flatten(dim, dim + 1)
                continue
            middle = 0.0 if align else offset
            places = (torch.arange(count, dtype=wide) + middle) * torch.full((), step, dtype=wide)
            y = _along(y, dim, places if is_nearest else places - middle, taps)
        return y.to(x.dtype).clone()

    return interpolate


def _interpolate(names: Sequence[str], function: Callable[..., Any]) -> None:
    """Register it for what is given sizes, and for what is given sizes or factors."""

    def by_factors(x: _Tensor, sizes: Sequence[Any] | None, *rest: Any) -> Any:
        *align, factors = rest
        if sizes is None:
            sizes = [int(size * factor) for size, factor in zip(x.shape[2:], factors, strict=True)]
        return function(x, sizes, *align, *(factors or ()))

    for name in names:
        operation = getattr(aten, name)
        TABLE[operation.default] = function
        TABLE[operation.vec] = by_factors


_interpolate([f"upsample_nearest{rank}d" for rank in (1, 2, 3)], _interpolation(_nearest, 0.0))
_interpolate([f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)], _interpolation(_nearest))
_interpolate(["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"], _interpolation(_between_two))
_interpolate(["upsample_bicubic2d"], _interpolation(_between_four))


def _linear(x: _Tensor) -> _Tensor:
    return (1 - x).clamp(min=0)


def _cubic(x: _Tensor) -> _Tensor:
    """As that of PIL."""
    near, far = _keys(x, -0.5)
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


def _smoothing(x: _Tensor, size: Any, count: Any, scale: Any, align: bool, kernel: Any, width: int) -> _Tensor:
    """The weights of ``size`` elements in each of ``count``: compute_indices_weights_aa of UpSampleKernel.cpp."""
    corners = (size - 1) / torch.sym_max(count - 1, 1)
    step = torch.scalar_tensor(corners if align else 1 / scale if scale else size / count, dtype=x.dtype)
    wide = step.clamp(min=1.0)
    centre = (step * (torch.arange(count, dtype=x.dtype) + 0.5))[:, None]
    reach, place = width / 2 * wide, torch.arange(size, dtype=x.dtype)
    first = torch.trunc(centre - reach + 0.5).clamp(min=0)
    is_inside = (place >= first) & (place < torch.trunc(centre + reach + 0.5).clamp(max=size))
    weights = torch.where(is_inside, kernel(((place - centre + 0.5) / wide).abs()), 0.0)
    return weights / weights.sum(1, True)


def _smooth_interpolation(overload: Any, kernel: Callable[[_Tensor], _Tensor], width: int) -> None:
    def interpolate(x: _Tensor, size: Sequence[Any], align: bool, high: Any = None, wide: Any = None) -> Any:
        if not x.dtype.is_floating_point:
            return NotImplemented
        rows = _smoothing(x, x.shape[2], size[0], high, align, kernel, width)
        columns = _smoothing(x, x.shape[3], size[1], wide, align, kernel, width)
        return rows @ (x @ columns.T)

    TABLE[overload] = interpolate


TABLE[aten.grid_sampler_3d.default] = _grid_sample_3d
_smooth_interpolation(aten._upsample_bilinear2d_aa.default, _linear, 2)
_smooth_interpolation(aten._upsample_bicubic2d_aa.default, _cubic, 4)


def _starts(sample: _Tensor, size: Any, count: Any, window: int) -> _Tensor:
    """Where windows of a fractional pooling begin, for each sample: ATen/native/FractionalMaxPooling.h."""
    if count == 1:
        return torch.full([*sample.shape, 1], size - window)
    alpha = torch.full((), (size - window) / (count - 1), dtype=sample.dtype)
    steps = torch.arange(count - 1, dtype=sample.dtype)
    first = ((steps + sample[..., None]) * alpha).to(torch.int64) - (sample[..., None] * alpha).to(torch.int64)
    return torch.cat([first, torch.full([*sample.shape, 1], size - window)], -1)


def _fractional_max_pool(x: _Tensor, windows: Sequence[int], counts: Sequence[Any], samples: _Tensor) -> Any:
    """Values and places; ``samples`` say of each channel where windows begin, of planes their columns first."""
    rank = len(windows)
    is_one = x.dim() == rank + 1
    x = x[None] if is_one else x
    sizes: Any = x.shape[-rank:]
    flat: Any = torch.zeros((), dtype=torch.int64)
    for dim, (size, count, window) in enumerate(zip(sizes, counts, windows, strict=True)):
        starts = _starts(samples[..., dim if rank == 3 else rank - 1 - dim], size, count, window)
        places = (starts[..., None] + torch.arange(window)).flatten(-2)
        shape = [1] * rank
        shape[dim] = count * window
        flat = flat * size + places.reshape([*places.shape[:2], *shape])
    flat = flat.expand(*x.shape[:2], *flat.shape[2:])
    found = x.flatten(2).gather(2, flat.flatten(2))
    split = [length for pair in zip(counts, windows, strict=True) for length in pair]
    order = [*range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2)]
    values, places = (
        one.reshape(*x.shape[:2], *split).permute(0, 1, *order).flatten(2 + rank) for one in (found, flat)
    )
    best = values.argmax(-1, keepdim=True)
    results = values.gather(-1, best)[..., 0], places.gather(-1, best)[..., 0]
    return tuple(one[0] for one in results) if is_one else results


TABLE[aten.fractional_max_pool2d.default] = TABLE[aten.fractional_max_pool3d.default] = _fractional_max_pool
