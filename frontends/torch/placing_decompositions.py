"""Decompositions of scatters, paddings and adaptive pooling in forms that torch-mlir lacks or dies of."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from devscope.frontends.torch.matrix_operations import SCATTERS
from devscope.frontends.torch.tables import MASKS, Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor


_NARROW = (torch.float16, torch.bfloat16)


def _neutral(reduce: str, dtype: torch.dtype) -> float:
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return math.inf if reduce == "amin" else -math.inf
    limits = torch.iinfo(dtype)
    return limits.max if reduce == "amin" else limits.min


def scattered_mean(x: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, include_self: bool = True) -> _Tensor:
    """The sum and the count are of the type of ``x``, as in ATen/native/TensorAdvancedIndexing.cpp."""
    total = x.scatter_reduce(dim, index, source, "sum", include_self=include_self)
    count = torch.full_like(x, int(include_self)).scatter_add(dim, index, torch.ones_like(source))
    count = torch.where(count == 0, 1, count)
    if x.dtype.is_floating_point:
        return total / count
    return torch.div(total, count, rounding_mode="floor").to(x.dtype)


def _along_dimension(overload: Any, only: str = "") -> None:
    """Scatters in which updates that differ in another dimension go to different elements.

    torch-mlir makes a list of all updates and their places of them, and its lowering of ``overload`` ends the
    process where the dimension is negative. ``only``: what the operation does with updates, if it does not say.
    """

    def scatter(x: _Tensor, dim: int, index: _Tensor, source: Any, *how: Any, **named: Any) -> Any:
        if dim < 0:
            return overload(x, dim + max(x.dim(), 1), index, source, *how, **named)
        if any(statically_known_true(size == 0) for size in index.shape):
            return x.clone()
        reduce = only or how[0]
        if reduce == "mean" and not x.dtype.is_complex:
            return scattered_mean(x, dim, index, source, **named)
        if not named.get("include_self", True) and not x.dtype.is_complex and x.dtype is not torch.bool:
            x = x.scatter(dim, index, _neutral(reduce, x.dtype))
            return overload(x, dim, index, source, reduce)
        if reduce in ("sum", "prod") and x.dtype in _NARROW:  # as PyTorch: sums of bf16 would stay at 256
            return overload(x.float(), dim, index, source.float(), *how, **named).to(x.dtype)
        sizes: list[Any] = [*x.shape[:dim], *x.shape[dim + 1 :]]
        if (
            reduce not in SCATTERS
            or x.dim() == 0
            or x.dtype.is_complex
            or x.dtype is torch.bool
            or not all(isinstance(size, int) for size in sizes)
            or sizes != [*index.shape[:dim], *index.shape[dim + 1 :]]
        ):
            return NotImplemented
        if not isinstance(source, torch.Tensor):
            source = torch.full(index.shape, source, dtype=x.dtype)
        source = source[tuple(slice(size) for size in index.shape)]
        before, behind = math.prod(sizes[:dim]), math.prod(sizes[dim:])
        x_rows, indices, rows = (y.reshape(before, y.shape[dim], behind) for y in (x, index, source))
        return SCATTERS[reduce](x_rows, indices, rows).reshape(x.shape)

    TABLE[overload] = scatter


def _scatter_and_reduce(x: _Tensor, dim: int, index: _Tensor, source: Any, *, reduce: str) -> Any:
    if not isinstance(source, torch.Tensor):
        source = torch.full(index.shape, source, dtype=x.dtype)
    return aten.scatter_reduce.two(x, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


def _index_copy(x: _Tensor, dim: int, index: _Tensor, source: _Tensor) -> Any:
    if x.dim() == 0:
        return NotImplemented
    dim %= x.dim()
    return _written_rows(x, dim, index.reshape(-1), source.reshape(source.shape or [1]))


def _index_put(x: _Tensor, indices: list[Any], source: _Tensor, accumulate: bool = False) -> Any:
    """Where torch-mlir's loop over indices is slow, or takes one where there is none: it takes one at least."""
    given = [dim for dim, index in enumerate(indices) if index is not None]
    if not given or x.dtype.is_complex:
        return NotImplemented
    if accumulate and x.dtype is torch.bool:
        return aten.index_put.default(x.to(torch.int32), indices, source.to(torch.int32), True).to(torch.bool)
    dim = given[0]
    index = indices[dim]
    if any(indices[one].dtype in MASKS for one in given):
        if len(given) == 1 and index.dim():
            return _put_at_truths(x, dim, index.to(torch.bool), source, accumulate)
        places: list[Any] = []
        for one in indices:
            places += one.nonzero().unbind(1) if one is not None and one.dtype in MASKS else [one]
        return aten.index_put.default(x, places, source, accumulate)
    if given[-1] - dim >= len(given):  # apart: what is written has their places in front
        front = list(range(len(given)))
        moved = x.movedim(given, front)
        return aten.index_put.default(moved, [indices[one] for one in given], source, accumulate).movedim(
            front, given
        )
    if not all(isinstance(size, int) for one in given for size in indices[one].shape):
        return _put_at_some(x, given, [indices[one] for one in given], source, accumulate)
    if len(given) > 1 or accumulate or index.dim() > 1:
        return NotImplemented
    shape = [*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]]
    source = source.expand(shape)
    return _written_rows(x, dim, index.reshape(-1), source if index.dim() else source.unsqueeze(dim))


def _put_at_truths(x: _Tensor, dim: int, mask: _Tensor, source: _Tensor, accumulate: bool) -> _Tensor:
    """A choice per element, whose row of ``source`` is the number of those that were true before."""
    rank = mask.dim()
    behind = x.dim() - dim - rank
    shape = [1] * (dim + 1 + behind - source.dim())
    rows = source.to(x.dtype).reshape([*shape, *source.shape])
    if statically_known_true(rows.shape[dim] == 1):
        rows = rows.reshape([*rows.shape[:dim], *[1] * rank, *rows.shape[dim + 1 :]])
    else:
        place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(min=0)
        one = rows.new_zeros([*rows.shape[:dim], 1, *rows.shape[dim + 1 :]])  # there may be none
        rows = torch.cat([rows, one], dim).index_select(dim, place)
        rows = rows.reshape([*rows.shape[:dim], *mask.shape, *rows.shape[dim + 1 :]])
    return torch.where(mask.reshape([*mask.shape, *[1] * behind]), x + rows if accumulate else rows, x)


def place_of(x: _Tensor, first: int, indices: list[_Tensor]) -> _Tensor:
    """The place of what ``indices`` of dimensions from ``first`` on name, among all that these dimensions have."""
    place = torch.zeros((), dtype=torch.int64)
    for dim, index in enumerate(indices, first):
        place = place * x.shape[dim] + torch.where(index < 0, index + x.shape[dim], index)
    return place


def _put_at_some(x: _Tensor, given: list[int], indices: list[_Tensor], source: _Tensor, accumulate: bool) -> Any:
    """At places of dimensions side by side, as many as are known at run time: they may be none."""
    if x.dtype is torch.bool:
        return _put_at_some(x.to(torch.int8), given, indices, source, accumulate).to(torch.bool)
    first, last, place = given[0], given[-1], place_of(x, given[0], indices)
    flat = x.flatten(first, last)
    rows = source.to(x.dtype).expand([*x.shape[:first], *place.shape, *x.shape[last + 1 :]])
    before, behind = math.prod(x.shape[:first]), math.prod(x.shape[last + 1 :])
    count = math.prod(place.shape)
    found = SCATTERS["sum" if accumulate else "set"](
        flat.reshape(before, flat.shape[first], behind),
        place.reshape(1, count, 1).expand(before, count, behind),
        rows.reshape(before, count, behind),
    )
    return found.reshape(x.shape)


def _written_rows(x: _Tensor, dim: int, index: _Tensor, source: _Tensor) -> Any:
    """``x`` with a few rows of ``source`` at ``index`` along ``dim``, the last of equal ones: a choice per row.

    torch-mlir makes a scatter of it, a loop over all elements of ``source`` one after the other: nothing for
    devices, where caches of keys and values are.
    """
    shape: Any = x.shape
    count: Any = index.shape[0]
    size = shape[dim]
    others = math.prod(length for d, length in enumerate(shape) if d != dim and isinstance(length, int))
    if not isinstance(count, int) or not 0 < count <= max(others, 1):
        return NotImplemented
    index = torch.where(index < 0, index + size, index)
    hits = index[:, None] == torch.arange(size)
    if count == 1:
        is_written = hits[0]
    else:
        last = torch.where(hits, torch.arange(count)[:, None], -1).amax(0)
        is_written, source = last >= 0, source.index_select(dim, last.clamp(min=0))
    return torch.where(is_written.view([-1 if d == dim else 1 for d in range(x.dim())]), source, x)


def _pad(x: _Tensor, pad: list[Any], value: Any = 0) -> Any:
    """torch-mlir has no negative widths, which take elements away."""
    if not any(isinstance(width, int) and width < 0 for width in pad):
        return NotImplemented
    for step, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - step
        first, last = max(-low, 0), x.shape[dim] - max(-high, 0)
        x = x.narrow(dim, first, last - first)
    return aten.constant_pad_nd.default(x, [max(width, 0) for width in pad], value)


def _pad_with_own(x: _Tensor, pad: list[Any], turned: bool) -> Any:
    """``x``, and around it slices of it, ``turned`` around or repeated: torch-mlir computes for each element which
    one it is.
    """
    if not all(isinstance(width, int) and width >= 0 for width in pad):
        return NotImplemented
    pairs = zip(pad[::2], pad[1::2], strict=True)
    dims = [(x.dim() - 1 - number, *widths) for number, widths in enumerate(pairs) if any(widths)]
    if not dims:
        return x.clone()
    sizes: list[Any] = list(x.shape)
    for dim, low, high in dims:
        sizes[dim] = low + x.shape[dim] + high
    made = x.new_empty(sizes)
    for cut in product(*(_pieces(x, *each, turned) for each in dims)):
        part, shape, around = x, list[Any](x.shape), list[int]()
        for (dim, _, _), (_, width, own) in zip(dims, cut, strict=True):
            if own is not None:
                part, shape[dim] = part.narrow(dim, own, width if turned else 1), width
                around.append(dim)
        places = [(dim, begin, begin + width) for (dim, _, _), (begin, width, _) in zip(dims, cut, strict=True)]
        made = _put(made, part.flip(around) if turned and around else part.expand(shape), places)
    return made


def _pieces(x: _Tensor, dim: int, low: int, high: int, turned: bool) -> list[tuple[Any, Any, Any]]:
    """Of what is padded, along ``dim``: where each begins, how long it is and, around ``x``, where it is from."""
    size = x.shape[dim]
    around = [(0, low, 1 if turned else 0), (low + size, high, size - 1 - high if turned else size - 1)]
    return [(low, size, None), *(piece for piece in around if piece[1])]


def _put(x: _Tensor, part: _Tensor, places: list[tuple[int, Any, Any]]) -> _Tensor:
    """``x`` with ``part`` in the place of what it has between two indices of some dimensions."""
    (dim, begin, end), *others = places
    if others:
        part = _put(x.narrow(dim, begin, end - begin), part, others)
    return torch.slice_scatter(x, part, dim, begin, end)


def _adaptive_windows(x: _Tensor, dim: int, count: Any) -> tuple[_Tensor, _Tensor, _Tensor | None]:
    """The ``count`` windows over ``dim`` as two dimensions, the places along ``dim`` that they have, and which of
    these are inside, if not all are.

    Windows begin and end as in ATen/native/AdaptivePooling.h.
    """
    size: Any = x.shape[dim]
    longest: Any = size // count + 2
    if isinstance(longest, int):
        longest = max(-(-(i + 1) * size // count) - i * size // count for i in range(count))
    shape = [count, longest, *[1] * (-1 - dim)]
    window = torch.arange(count)[:, None]
    places = window * size // count + torch.arange(longest)
    if statically_known_true(size == count * longest):
        return x.unflatten(dim, (count, longest)), places.reshape(shape), None
    end = ((window + 1) * size + (count - 1)) // count
    windows = x.index_select(dim, torch.minimum(places, end - 1).reshape(-1)).unflatten(dim, (count, longest))
    return windows, places.reshape(shape), (places < end).reshape(shape)


def _adaptive_max_pool(x: _Tensor, counts: list[Any]) -> Any:
    """One dimension after the other, the last one last, so that rows are read as they lie."""
    rank = len(counts)
    if not all(x.shape[-rank:]) or not all(counts):
        return NotImplemented
    if rank > 1 and set(counts) == {1}:
        found = _adaptive_max_pool(x.flatten(-rank), [1])
        return tuple(y.reshape([*x.shape[:-rank], *counts]) for y in found)
    least = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    place, step = torch.zeros((), dtype=torch.int64), math.prod(x.shape[-rank:])
    for dim, count in enumerate(counts, -rank):
        step = step // x.shape[dim]
        found = _adaptive_windows(place, dim, count)[0] if place.dim() else place
        windows, places, is_inside = _adaptive_windows(x, dim, count)
        places = found + places * step
        windows = windows if is_inside is None else torch.where(is_inside, windows, least)
        x = windows.amax(dim)
        same = windows == x.unsqueeze(dim)
        place = torch.where(same if is_inside is None else is_inside & same, places, 2**63 - 1).amin(dim)
        if x.dtype.is_floating_point:  # of what is not a number, PyTorch takes the last
            last = torch.where(torch.isnan(windows), places, -1).amax(dim)
            place = torch.where(last >= 0, last, place)
    return x, place


def _adaptive_avg_pool(x: _Tensor, counts: list[Any]) -> Any:
    """As `_adaptive_max_pool`; torch-mlir gathers all elements of all windows."""
    rank = len(counts)
    if not all(counts):
        return NotImplemented
    found = x.float() if x.dtype in _NARROW else x
    for dim, count in enumerate(counts, -rank):
        if statically_known_true(found.shape[dim] == count):
            continue
        windows, _, is_inside = _adaptive_windows(found, dim, count)
        if is_inside is None:
            found = windows.mean(dim)
        else:
            found = torch.where(is_inside, windows, 0).sum(dim) / is_inside.sum(1)
    return found.to(x.dtype)


def _index_add(x: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, alpha: Any = 1) -> Any:
    """Behind the first dimension rows are apart, and what each is given is added to it alone."""
    if x.dim() < 2 or dim % x.dim() == 0 or x.dtype.is_complex or x.dtype is torch.bool:
        return NotImplemented
    dim %= x.dim()
    places = index.to(torch.int64).reshape([1] * dim + [-1] + [1] * (x.dim() - dim - 1))
    return x.scatter_add(dim, places.expand(source.shape), source if alpha == 1 else source * alpha)


_along_dimension(aten.scatter.src, "set")
_along_dimension(aten.scatter.value, "set")
_along_dimension(aten.scatter_add.default, "sum")
_along_dimension(aten.scatter_reduce.two)
TABLE[aten.scatter.reduce] = TABLE[aten.scatter.value_reduce] = _scatter_and_reduce
TABLE[aten.index_copy.default] = _index_copy
TABLE[aten.index_add.default] = _index_add
TABLE[aten.index_put.default] = _index_put
TABLE[aten.constant_pad_nd.default] = _pad
for _rank in (1, 2, 3):
    TABLE[getattr(aten, f"reflection_pad{_rank}d").default] = partial(_pad_with_own, turned=True)
    TABLE[getattr(aten, f"replication_pad{_rank}d").default] = partial(_pad_with_own, turned=False)
for _overload in (
    aten.adaptive_max_pool1d.default,
    aten.adaptive_max_pool2d.default,
    aten.adaptive_max_pool3d.default,
):
    TABLE[_overload] = _adaptive_max_pool
for _overload in (
    aten.adaptive_avg_pool1d.default,
    aten._adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool3d.default,
):
    TABLE[_overload] = _adaptive_avg_pool


@TABLE.of(aten.bincount.default)
def _bincount(x: _Tensor, weights: _Tensor | None = None, minlength: int = 0) -> Any:
    """With weights, sums of these: as many as are counted without."""
    if weights is None:
        return NotImplemented
    weights = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
    return torch.zeros_like(aten.bincount(x, None, minlength), dtype=weights.dtype).index_add(0, x.long(), weights)
