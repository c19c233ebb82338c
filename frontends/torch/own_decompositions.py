"""Decompositions of operations that neither PyTorch decomposes nor torch-mlir lowers, or lowers wrongly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

from devscope.frontends.torch import matrix_operations
from devscope.frontends.torch.matrix_operations import WORDS, bits_as, copysign, erfc, trunc
from devscope.frontends.torch.placing_decompositions import place_of
from devscope.frontends.torch.tables import MASKS, Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor


@TABLE.of(aten.gelu.default)
def _gelu(x: _Tensor, approximate: str = "none") -> Any:
    """torch-mlir has one for both forms, which differ in the fourth digit, and divides by a root of 2."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    if approximate == "none":
        return (wide * 0.5 * (1 + torch.erf(wide * math.sqrt(0.5)))).to(x.dtype)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide)
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


@TABLE.of(aten.rrelu_with_noise_functional.default)
def _rrelu(
    x: _Tensor, noise: _Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, _: Any = None
) -> Any:
    """One slope, the mean of those that are drawn to train, and the slope of each element."""
    if not training:
        return torch.ops.aten.leaky_relu(x, (lower + upper) / 2), noise
    slopes = torch.where(x > 0, 1.0, aten.uniform(x, lower, upper))
    return x * slopes, slopes


@TABLE.of(aten.native_dropout.default)
def _dropout(x: _Tensor, p: float, train: bool | None) -> Any:
    """A draw that depends on sizes alone, which `random_numbers` may take out of the program."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = aten.bernoulli.p(x, 1 - p)
    return x * mask * (1 / (1 - p)), mask.bool()


@TABLE.of(aten.multinomial.default)
def _multinomial(x: _Tensor, count: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """As PyTorch: the largest of quotients by exponential variates. With replacement: by the sums of weights."""
    if generator is not None:
        return NotImplemented
    if replacement and count > 1:
        sums = x.cumsum(-1)
        drawn = torch.rand([*x.shape[:-1], count], dtype=x.dtype) * sums[..., -1:]
        return torch.searchsorted(sums, drawn, right=True).clamp(max=x.shape[-1] - 1)
    quotients = x / aten.exponential(x, 1.0)
    return quotients.argmax(-1, keepdim=True) if count == 1 else quotients.topk(count, -1)[1]


@TABLE.of(aten.index.Tensor)
def _index(x: _Tensor, indices: list[_Tensor | None]) -> Any:
    """What a mask takes is at the places where it is true; torch-mlir's passes do not end for one."""
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if not any(index.dtype in MASKS for _, index in given):
        return _at_places(x, given)
    dim, mask = given[0]
    if len(given) == 1 and mask.dim():
        return x.flatten(dim, dim + mask.dim() - 1).index_select(dim, mask.flatten().nonzero()[:, 0])
    places: list[_Tensor | None] = []
    for index in indices:
        places += index.nonzero().unbind(1) if index is not None and index.dtype in MASKS else [index]
    return torch.ops.aten.index.Tensor(x, places)


def _at_places(x: _Tensor, given: list[tuple[int, _Tensor]]) -> Any:
    """What several indices take of which sizes are not known: torch-mlir lacks it, but for one index.

    Dimensions that are not side by side go to the front, where PyTorch has what is taken of them.
    """
    sizes: list[Any] = [size for _, index in given for size in index.shape]
    if len(given) < 2 or all(isinstance(size, int) for size in sizes):
        return NotImplemented
    (first, _), (last, _) = given[0], given[-1]
    if last - first >= len(given):
        x = x.movedim([dim for dim, _ in given], list(range(len(given))))
        first, last = 0, len(given) - 1
    place = place_of(x, first, [index for _, index in given])
    return torch.ops.aten.index.Tensor(x.flatten(first, last), [None] * first + [place])


@TABLE.of(aten.repeat.default)
def _repeat(x: _Tensor, times: list[Any]) -> Any:
    """Of sizes that are known at run time: torch-mlir finds those of the result by division, of what may be 0."""
    sizes: list[Any] = [*x.shape]
    if all(isinstance(size, int) for size in sizes):
        return NotImplemented
    sizes = [*[1] * (len(times) - x.dim()), *sizes]
    apart = x.reshape([part for size in sizes for part in (1, size)])
    spread = apart.expand([part for pair in zip(times, sizes, strict=True) for part in pair])
    return spread.reshape([count * size for count, size in zip(times, sizes, strict=True)])


@TABLE.of(aten.repeat_interleave.Tensor)
def _repeat_interleave(repeats: _Tensor, output_size: Any = None) -> Any:
    """The number of each, as often: that of the sums that are not above a place."""
    ends = repeats.cumsum(0)
    if output_size is None:
        output_size = repeats.sum().item()
        getattr(torch, "_check")(output_size >= 0)  # noqa: B009  (it has no public name)
    found = torch.searchsorted(ends, torch.arange(output_size, dtype=ends.dtype), right=True)
    return found.to(repeats.dtype)


@TABLE.of(aten.split_with_sizes.default)
def _split(x: _Tensor, sizes: list[Any], dim: int = 0) -> Any:
    """Sizes that are known at run time: PyTorch makes strides of them, which torch-mlir lacks."""
    if all(isinstance(size, int) for size in sizes):
        return NotImplemented
    ends = list(itertools.accumulate(sizes))
    return [aten.slice.Tensor(x, dim, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@TABLE.of(aten.masked_select.default)
def _masked_select(x: _Tensor, mask: _Tensor) -> Any:
    x, mask = torch.broadcast_tensors(x, mask)
    return x.flatten().index_select(0, mask.flatten().nonzero()[:, 0])


def _runs(x: _Tensor) -> tuple[_Tensor, _Tensor, _Tensor]:
    """The first of equal neighbours, each; the number of the run that an element is in; lengths of runs."""
    place = torch.arange(x.shape[0])
    begins = (place == 0) | (x != x.index_select(0, (place - 1).clamp(min=0)))
    run = begins.cumsum(0) - 1
    places = begins.nonzero()[:, 0]
    lengths = torch.zeros_like(run).scatter_add(0, run, torch.ones_like(run))
    return x.index_select(0, places), run, lengths.index_select(0, run.index_select(0, places))


@TABLE.of(aten._unique2.default)
def _unique(
    x: _Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[_Tensor, _Tensor, _Tensor]:
    ordered, order = x.flatten().sort()
    values, run, counts = _runs(ordered)
    return values, torch.zeros_like(run).scatter(0, order, run).reshape(x.shape), counts


@TABLE.of(aten.unique_consecutive.default)
def _unique_consecutive(
    x: _Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if dim is not None and x.dim() != 1:
        return NotImplemented
    values, run, counts = _runs(x.flatten())
    return values, run.reshape(x.shape), counts


# Sums of bags: the bag of each index is the number of bags that begin up to there.


@TABLE.of(aten._embedding_bag_forward_only.default, aten._embedding_bag.default)
def _embedding_bag(
    weight: _Tensor,
    indices: _Tensor,
    offsets: _Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: _Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    if include_last_offset:
        offsets = offsets[:-1]
    bags, count = offsets.shape[0], indices.shape[0]
    begins = torch.zeros(count + 1, dtype=torch.int64).index_add(0, offsets, torch.ones(bags, dtype=torch.int64))
    bag = begins[:count].cumsum(0) - 1
    rows = weight.index_select(0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    inside = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    sizes = torch.zeros(bags, dtype=torch.int64).index_add(0, bag, inside.to(torch.int64))
    largest = torch.zeros_like(offsets)
    if mode == 2:
        rows = torch.where(inside[:, None], rows, -math.inf)
        lowest = torch.full([1, bags, rows.shape[1]], -math.inf, dtype=rows.dtype)
        index = bag[None, :, None].expand([1, *rows.shape])
        lowest = matrix_operations.SCATTERS["amax"](lowest, index, rows[None])[0]
        found = torch.where(sizes[:, None] > 0, lowest, 0)
        place = torch.where(rows == found.index_select(0, bag), torch.arange(count)[:, None], count)
        first = torch.full_like(lowest, count, dtype=torch.int64)
        first = matrix_operations.SCATTERS["amin"](first[None], index, place[None])[0]
        largest = torch.cat([indices, indices.new_zeros(1)])[first]
    else:
        rows = rows if padding_idx < 0 else torch.where(inside[:, None], rows, 0)
        found = torch.zeros([bags, rows.shape[1]], dtype=rows.dtype).index_add(0, bag, rows)
        if mode == 1:
            found = found / sizes.clamp(min=1)[:, None].to(found.dtype)
    return found.to(weight.dtype), bag, sizes, largest


# Order.


def _scanned(routine: Any, x: _Tensor, dim: int) -> Any:
    """What a routine over the middle of three dimensions makes of ``x`` along ``dim``, of any rank."""
    dim %= max(x.dim(), 1)
    before, behind = x.shape[:dim], x.shape[dim + 1 :]
    rows = x.reshape([math.prod(before), x.shape[dim] if x.dim() else 1, math.prod(behind)])
    found = routine(rows)
    return found.reshape(x.shape) if isinstance(found, _Tensor) else tuple(y.reshape(x.shape) for y in found)


def _running(routine: Any) -> Callable[..., Any]:
    def extrema(x: _Tensor, dim: int) -> Any:
        if 0 in x.shape:
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        is_small = x.dtype in (torch.uint8, torch.bool)
        values, indices = _scanned(routine, x.to(torch.int16) if is_small else x, dim)
        return values.to(x.dtype), indices

    return extrema


TABLE[aten.cummax.default] = _running(matrix_operations.cummax)
TABLE[aten.cummin.default] = _running(matrix_operations.cummin)


@TABLE.of(aten.logcumsumexp.default)
def _logcumsumexp(x: _Tensor, dim: int) -> Any:
    if x.dtype.is_complex:
        return NotImplemented
    if 0 in x.shape:
        return x.clone()
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return _scanned(matrix_operations.logcumsumexp, wide, dim).to(x.dtype)


@TABLE.of(aten.sort.default)
def _sort_of_any(x: _Tensor, dim: int = -1, descending: bool = False) -> Any:
    """torch-mlir takes true for less than false."""
    if x.dtype is not torch.bool:
        return NotImplemented
    values, indices = aten.sort.default(x.to(torch.uint8), dim, descending)
    return values.to(torch.bool), indices


@TABLE.of(aten.sort.stable)
def _sort(x: _Tensor, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    return aten.sort.default(x, dim, descending)


def _kept(x: _Tensor, dim: int, keepdim: bool) -> _Tensor:
    return x if keepdim else x.squeeze(dim)


@TABLE.of(aten.kthvalue.default)
def _kthvalue(x: _Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, indices = aten.sort.default(x, dim)
    return tuple(_kept(part.narrow(dim, k - 1, 1), dim, keepdim) for part in (values, indices))


@TABLE.of(aten.topk.default)
def _topk(x: _Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """torch-mlir has those in order; any order will do for others."""
    return NotImplemented if sorted else torch.topk(x, k, dim, largest)


_LONG = 64
"""Elements of rows whose best ones are found first, and then the best of these."""


def _place_of_best(overload: Any, best: Any) -> None:
    def decompose(x: _Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        sizes: list[Any] = list(x.shape)
        if dim is not None or not all(isinstance(size, int) for size in sizes) or x.dim() < 2:
            return NotImplemented
        length = sizes[-1]
        if length < _LONG or x.numel() < _LONG * length:
            return NotImplemented
        values, places = best(x.reshape(-1, length), 1)
        row = overload(values, 0, True)
        place = row * length + places.index_select(0, row)
        return place.reshape([1] * x.dim() if keepdim else [])

    TABLE[overload] = decompose


_place_of_best(aten.argmax.default, aten.max.dim)
_place_of_best(aten.argmin.default, aten.min.dim)


@TABLE.of(aten.median.dim)
def _median(x: _Tensor, dim: int, keepdim: bool = False) -> Any:
    values, indices = _kthvalue(x, (x.shape[dim] + 1) // 2, dim, True)
    if x.dtype.is_floating_point:
        isnan = torch.isnan(x)
        broken = isnan.any(dim, True)
        first = isnan.to(torch.int64).argmax(dim, True)
        values, indices = torch.where(broken, math.nan, values), torch.where(broken, first, indices)
    return _kept(values, dim, keepdim), _kept(indices, dim, keepdim)


@TABLE.of(aten.median.default)
def _median_of_all(x: _Tensor) -> Any:
    return _median(x.reshape(-1), 0)[0]


@TABLE.of(aten.nanmedian.dim)
def _nanmedian(x: _Tensor, dim: int, keepdim: bool = False) -> Any:
    """Of what is a number: those that are not stand behind in order."""
    if not x.dtype.is_floating_point or x.dim() == 0:
        return _median(x, dim, keepdim)
    values, indices = aten.sort.default(torch.where(torch.isnan(x), math.inf, x), dim)
    isnan = torch.isnan(x)
    count = (~isnan).sum(dim, True)
    place = ((count - 1) // 2).clamp(min=0)
    value, index = values.gather(dim, place), indices.gather(dim, place)
    broken = count == 0
    value, index = torch.where(broken, math.nan, value), torch.where(broken, 0, index)
    return _kept(value, dim, keepdim), _kept(index, dim, keepdim)


@TABLE.of(aten.nanmedian.default)
def _nanmedian_of_all(x: _Tensor) -> Any:
    return _nanmedian(x.reshape(-1), 0)[0]


_SEARCHED = 512
"""Boundaries from which on it is faster to search than to count."""


@TABLE.of(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def _searchsorted(
    ordered: _Tensor,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: _Tensor | None = None,
) -> Any:
    if sorter is not None:
        ordered = ordered.gather(-1, sorter)
    if not isinstance(values, torch.Tensor):
        values = torch.full((), values, dtype=torch.result_type(ordered, values))
    is_behind = torch.le if right or side == "right" else torch.lt
    length: Any = ordered.shape[-1]
    if isinstance(length, int) and length >= _SEARCHED:
        count = _bisected(ordered, values, is_behind)
    else:
        count = is_behind(ordered[..., None, :] if ordered.dim() > 1 else ordered, values[..., None]).sum(-1)
    if values.dtype.is_floating_point:
        count = torch.where(torch.isnan(values), torch.scalar_tensor(ordered.shape[-1], dtype=count.dtype), count)
    return count.to(torch.int32) if out_int32 else count


def _bisected(ordered: _Tensor, values: _Tensor, is_behind: Any) -> _Tensor:
    """How many of ``ordered`` the values are behind: the bits of that, the highest first."""
    length: int = ordered.shape[-1]
    flat, row = ordered.reshape(-1), torch.zeros((), dtype=torch.int64)
    if ordered.dim() > 1:
        row = torch.arange(math.prod(ordered.shape[:-1])).reshape([*ordered.shape[:-1], 1]) * length
    count = torch.zeros(values.shape, dtype=torch.int64)
    for bit in reversed(range(length.bit_length())):
        more = count + (1 << bit)
        last = flat[row + (more - 1).clamp(max=length - 1)]
        count = torch.where((more <= length) & is_behind(last, values), more, count)
    return count


@TABLE.of(aten.bucketize.Tensor, aten.bucketize.Scalar)
def _bucketize(values: Any, boundaries: _Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(boundaries, values, out_int32=out_int32, right=right)


@TABLE.of(aten._cdist_forward.default)
def _cdist(a: _Tensor, b: _Tensor, p: float, compute_mode: int | None) -> Any:
    apart = (a[..., :, None, :] - b[..., None, :, :]).abs()
    if p == 0:
        return (apart != 0).to(a.dtype).sum(-1)
    if math.isinf(p):
        return apart.amax(-1)
    return (
        apart.sum(-1) if p == 1 else (apart * apart).sum(-1).sqrt() if p == 2 else apart.pow(p).sum(-1).pow(1 / p)
    )


# Functions of numbers.


@TABLE.of(aten.rsub.Scalar)
def _rsub(x: _Tensor, other: Any, alpha: Any = 1) -> Any:
    """torch-mlir rounds the number to f32."""
    return other + -alpha * x if x.dtype == torch.float64 and not isinstance(other, complex) else NotImplemented


@TABLE.of(aten.logaddexp.default)
def _logaddexp(a: _Tensor, b: _Tensor) -> Any:
    """torch-mlir loses a NaN beside an infinity."""
    most = torch.maximum(a, b)
    return torch.where((a == b) & torch.isinf(a), a, most + torch.log1p(torch.exp(-(a - b).abs())))


@TABLE.of(aten.logaddexp2.default)
def _logaddexp2(a: _Tensor, b: _Tensor) -> Any:
    most, more = torch.maximum(a, b), torch.log1p(torch.exp2(-(a - b).abs())) * (1 / math.log(2))
    return torch.where((a == b) & torch.isinf(a), a, most + more)


def float_dtype(x: _Tensor) -> torch.dtype:
    """The type of what PyTorch computes in floats of ``x``."""
    return x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()


@TABLE.of(aten.hypot.default)
def _hypot(x: _Tensor, y: _Tensor) -> Any:
    x, y = x.abs(), y.abs()
    most, least = torch.maximum(x, y), torch.minimum(x, y)
    ratio = least / most
    found = torch.where(most == 0, 0, most * torch.sqrt(1 + ratio * ratio))
    return torch.where(torch.isinf(x) | torch.isinf(y), math.inf, found)


@TABLE.of(aten.signbit.default)
def _signbit(x: _Tensor) -> Any:
    return bits_as(x, WORDS[x.dtype.itemsize]) < 0 if x.dtype.is_floating_point else x < 0


@TABLE.of(aten.copysign.Tensor)
def _copysign(x: _Tensor, y: _Tensor) -> Any:
    dtype = torch.result_type(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return copysign(*torch.broadcast_tensors(x.to(dtype), y.to(dtype)))


@TABLE.of(aten.trunc.default)
def _trunc(x: _Tensor) -> Any:
    """torch-mlir loses the sign of a zero."""
    return trunc(x) if x.dtype.is_floating_point else x.clone()


@TABLE.of(aten.erfc.default)
def _erfc(x: _Tensor) -> Any:
    return erfc(x.to(float_dtype(x)))


@TABLE.of(aten.elu.default)
def _elu(x: _Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """torch-mlir's has no digits near 0."""
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


@TABLE.of(aten.leaky_relu.default)
def _leaky_relu(x: _Tensor, slope: Any = 0.01) -> Any:
    """torch-mlir loses the sign of a zero."""
    return torch.where(x > 0, x, x * slope)


@TABLE.of(aten.copysign.Scalar)
def _copysign_number(x: _Tensor, y: float) -> Any:
    size = x.to(float_dtype(x)).abs()
    return -size if math.copysign(1, y) < 0 else size


@TABLE.of(aten.ldexp.Tensor)
def _ldexp(x: _Tensor, y: _Tensor) -> Any:
    dtype = torch.result_type(x, y)
    return (x * torch.pow(2.0, y)).to(dtype if dtype.is_floating_point else torch.get_default_dtype())


@TABLE.of(aten.pow.Tensor_Scalar)
def _root(x: _Tensor, exponent: float) -> Any:
    """PyTorch's roots: unlike C's power, that of -0 is -0, and that of -inf no number."""
    if x.dtype is torch.float16 or not x.dtype.is_floating_point or abs(exponent) != 0.5:
        return NotImplemented
    return torch.sqrt(x) if exponent > 0 else torch.rsqrt(x)


# What PyTorch's own decompositions end in.

_PRIMS = (
    "abs acos acosh asin asinh atan atanh cos cosh bitwise_not ceil erf erfc exp expm1 exp2 floor "
    "isfinite log log1p log2 log10 neg reciprocal round sign sin sinh sqrt rsqrt tan tanh trunc "
    "atan2 bitwise_and bitwise_or bitwise_xor div eq fmax fmin fmod ge gt le lt maximum minimum mul ne "
    "pow remainder shift_left shift_right_arithmetic add sub lgamma digamma hypot "
)
_BY_OTHER_NAMES = {
    "shift_left": "bitwise_left_shift",
    "shift_right_arithmetic": "bitwise_right_shift",
}


def _as_aten(name: str) -> None:
    packet = getattr(aten, _BY_OTHER_NAMES.get(name, name))
    overloads = packet.overloads()
    kind = next(one for one in ("Tensor_Tensor", "Tensor", "default") if one in overloads)
    overload = getattr(packet, kind)

    def same(*arguments: Any) -> Any:
        return overload(*arguments)

    TABLE[getattr(torch.ops.prims, name).default] = same


for _name in _PRIMS.split():
    _as_aten(_name)


def _with_tensor(overload: Any, by: Any) -> None:
    def of_tensors(x: _Tensor, number: Any) -> Any:
        return by(x, torch.full((), number, dtype=x.dtype))

    TABLE[overload] = of_tensors


@TABLE.of(torch.ops.prims.scalar_tensor.default)
def _scalar_tensor(number: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return torch.full((), number, dtype=dtype)


TABLE[torch.ops.prims.signbit.default] = _signbit
_with_tensor(aten.bitwise_xor.Scalar, aten.bitwise_xor.Tensor)
_with_tensor(aten.bitwise_or.Scalar, aten.bitwise_or.Tensor)
_with_tensor(aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Tensor)
_with_tensor(aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor)
_with_tensor(aten.fmod.Scalar, aten.fmod.Tensor)


def _compares_floats(overload: Any) -> None:
    """torch-mlir folds comparisons of constant floats with integers by the bits of these."""

    def with_float(x: _Tensor, number: Any) -> Any:
        is_mixed = x.dtype.is_floating_point and isinstance(number, int)
        return overload(x, float(number)) if is_mixed else NotImplemented

    TABLE[overload] = with_float


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _compares_floats(getattr(aten, _name).Scalar)


# What is not a number stays so: torch-mlir compares, and takes the other one.


@TABLE.of(aten.maximum.default)
def _maximum(x: _Tensor, y: _Tensor) -> Any:
    return torch.where((x > y) | torch.isnan(x), x, y) if x.dtype.is_floating_point else NotImplemented


@TABLE.of(aten.minimum.default)
def _minimum(x: _Tensor, y: _Tensor) -> Any:
    return torch.where((x < y) | torch.isnan(x), x, y) if x.dtype.is_floating_point else NotImplemented


@TABLE.of(aten.clamp.default, aten.hardtanh.default)
def _clamp(x: _Tensor, least: Any = None, most: Any = None) -> Any:
    if not x.dtype.is_floating_point:
        return NotImplemented
    if least is not None:
        by_value = isinstance(least, int | float) and not math.isnan(least)
        x = torch.where(x < least, least, x) if by_value else _maximum(x, torch.full((), least, dtype=x.dtype))
    if most is not None:
        by_value = isinstance(most, int | float) and not math.isnan(most)
        x = torch.where(x > most, most, x) if by_value else _minimum(x, torch.full((), most, dtype=x.dtype))
    return x


@TABLE.of(aten.clamp.Tensor)
def _clamp_by_tensors(x: _Tensor, least: _Tensor | None = None, most: _Tensor | None = None) -> Any:
    if not x.dtype.is_floating_point:
        return NotImplemented
    x = x if least is None else _maximum(x, least)
    return x if most is None else _minimum(x, most)


@TABLE.of(aten.clamp_min.default, aten.clamp_min.Tensor)
def _clamp_min(x: _Tensor, least: Any) -> Any:
    return (_clamp_by_tensors if isinstance(least, _Tensor) else _clamp)(x, least)


@TABLE.of(aten.clamp_max.default, aten.clamp_max.Tensor)
def _clamp_max(x: _Tensor, most: Any) -> Any:
    return (_clamp_by_tensors if isinstance(most, _Tensor) else _clamp)(x, None, most)


@TABLE.of(aten.relu6.default)
def _relu6(x: _Tensor) -> Any:
    return _clamp(x, 0, 6)


@TABLE.of(aten.hardsigmoid.default)
def _hardsigmoid(x: _Tensor) -> Any:
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (_clamp(wide + 3, 0, 6) / 6).to(x.dtype)


@TABLE.of(aten.fmod.Tensor)
def _fmod(x: _Tensor, y: _Tensor) -> Any:
    """torch-mlir takes off as often the divisor as the rounded quotient says."""
    if not x.dtype.is_floating_point:
        return NotImplemented
    return torch.copysign(torch.remainder(x.abs(), y.abs()), x)


# PyTorch divides as Python does: by what is left, so that 1 // 0.1 is 9, and infinities are no quotients.


@TABLE.of(aten.floor_divide.default, aten.floor_divide.Scalar)
def _floor_divide(x: Any, y: Any) -> Any:
    dtype = torch.result_type(x, y)
    if dtype is torch.int64:
        x, y = (one.to(dtype) if isinstance(one, _Tensor) else torch.full((), one) for one in (x, y))
        return _floor_of_quotient(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    x, y = (one.to(wide) if isinstance(one, _Tensor) else torch.full((), one, dtype=wide) for one in (x, y))
    rest = torch.fmod(x, y)
    found = (x - rest) / y
    found = torch.where((rest != 0) & ((rest < 0) != (y < 0)), found - 1, found)
    whole = torch.floor(found)
    whole = torch.where(found - whole > 0.5, whole + 1, whole)
    whole = torch.where(found == 0, torch.copysign(torch.zeros((), dtype=wide), x / y), whole)
    return torch.where(y == 0, x / y, whole).to(dtype)


def _floor_of_quotient(x: _Tensor, y: _Tensor) -> _Tensor:
    """Of integers of 64 bits, which torch-mlir divides as f64."""
    whole = torch.div(x, y, rounding_mode="trunc")
    return whole - (((x - whole * y) != 0) & ((x < 0) != (y < 0))).to(torch.int64)


@TABLE.of(aten.neg.default)
def _negative(x: _Tensor) -> Any:
    """torch-mlir takes integers for f32."""
    return torch.zeros((), dtype=x.dtype) - x if x.dtype in (torch.int32, torch.int64) else NotImplemented


@TABLE.of(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _divide(x: _Tensor, y: Any, *, rounding_mode: str | None = None) -> Any:
    """torch-mlir rounds the number to f32."""
    if rounding_mode == "floor":
        return _floor_divide(x, y)
    return torch.trunc(x / y) if x.dtype is torch.float64 and rounding_mode == "trunc" else NotImplemented


@TABLE.of(aten.remainder.Scalar_Tensor)
def _remainder_of_number(number: Any, x: _Tensor) -> Any:
    return torch.remainder(torch.full((), number, dtype=torch.result_type(number, x)), x)
