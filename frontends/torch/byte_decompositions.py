"""Decompositions for integers of 8 bits, for operands of several types, and powers of integers.

torch-mlir widens bytes with their sign whether they have one or not, and ends the process for some products and
divisions of them. So they are computed as integers of 16 or 64 bits, and made bytes again. Of operands of which
some are integers or bool and others are not it compares, or bounds, as what the first one is: they get one type
before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from devscope.frontends.torch import placing_decompositions
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_BYTES = (torch.uint8, torch.int8)
_INTEGERS = (*_BYTES, torch.int16, torch.int32, torch.int64)
_NARROW = (*_BYTES, torch.bool)

_OF_OPERANDS = (
    "add sub rsub mul div floor_divide true_divide remainder fmod pow atan2 maximum minimum fmax fmin "
    "clamp clamp_min clamp_max eq ne lt le gt ge where.self bitwise_and bitwise_or bitwise_xor "
    "reciprocal abs gcd addcmul"
)
"""Operations on elements, whose operands are of one type after promotion; their result is of it, or of bool or a
float."""
_SHIFTS = "bitwise_left_shift bitwise_right_shift"
"""The same, by up to more than the bits of a byte."""
_OPERANDS = ("self", "other", "exponent", "min", "max", "tensor1", "tensor2")
"""How schemas name operands."""
_OF_ARGUMENTS_DTYPE = "max.default max.dim min.default min.dim sort topk scatter scatter_add scatter_reduce mm bmm"
"""Operations whose result, or the first of two, has the dtype of their arguments."""
_OF_OTHER_DTYPE = "sum.default sum.dim_IntList prod.default prod.dim_int mean bincount"


def _overloads(names: str) -> list[Any]:
    found: list[Any] = []
    for name in names.split():
        packet, _, one = name.partition(".")
        kinds = getattr(aten, packet).overloads()
        found += [getattr(getattr(aten, packet), kind) for kind in kinds if kind == one or not one]
    return [overload for overload in found if not any(part.is_out for part in overload._schema.arguments)]


def _wide(value: Any, narrow: Sequence[torch.dtype], dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in narrow else value


def _computed_wide(overload: Any, *, has_arguments_dtype: bool) -> None:
    narrow = _NARROW if overload.overloadpacket in (aten.scatter_add, aten.scatter_reduce) else _BYTES

    def wide(*arguments: Any, **named: Any) -> Any:
        dtype = next(one.dtype for one in arguments if isinstance(one, torch.Tensor))
        if dtype not in narrow:
            return NotImplemented
        found = overload(*(_wide(one, narrow, torch.int64) for one in arguments), **named)
        if not has_arguments_dtype:
            return found
        return (found[0].to(dtype), *found[1:]) if isinstance(found, tuple | list) else found.to(dtype)

    TABLE[overload] = wide


def _wrapped(value: Any, dtype: torch.dtype) -> Any:
    """A number of ``dtype`` for one that may be outside of its limits, as PyTorch takes it."""
    if not isinstance(value, int):
        return value
    least = torch.iinfo(dtype).min
    return (value - least) % 256 + least


def _of_one_type(overload: Any, wide_byte: torch.dtype) -> None:
    places = [at for at, part in enumerate(overload._schema.arguments) if part.name in _OPERANDS]
    is_quotient = overload.overloadpacket in (aten.div, aten.true_divide, aten.atan2)

    def promoted(*arguments: Any, **named: Any) -> Any:
        operands = [arguments[at] for at in places if at < len(arguments) and arguments[at] is not None]
        dtypes = {one.dtype for one in operands if isinstance(one, torch.Tensor)}
        if not any(dtype in _INTEGERS or dtype is torch.bool for dtype in dtypes):
            return NotImplemented
        _, dtype = elementwise_dtypes(*operands, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
        narrow = (*_NARROW, *_INTEGERS) if dtype.is_floating_point else _NARROW
        if dtype is torch.bool or dtype.is_complex or not dtypes.intersection(narrow):
            return NotImplemented
        wide, given = wide_byte if dtype in _BYTES else dtype, list(arguments)
        for at in [at for at in places if at < len(given)]:
            one = given[at]
            if dtype in _BYTES and not (is_quotient and named.get("rounding_mode") is None):
                one = one.to(dtype) if isinstance(one, torch.Tensor) else _wrapped(one, dtype)
            given[at] = _wide(one, narrow, wide)
        found = overload(*given, **named)
        return found.to(dtype) if found.dtype is wide_byte else found

    TABLE[overload] = promoted


for _names, _type in ((_OF_OPERANDS, torch.int16), (_SHIFTS, torch.int64)):
    for _overload in _overloads(_names):
        if any(str(part.type) == "Tensor" for part in _overload._schema.arguments):
            _of_one_type(_overload, _type)
for _overload in _overloads(_OF_ARGUMENTS_DTYPE):
    _computed_wide(_overload, has_arguments_dtype=True)
for _overload in _overloads(_OF_OTHER_DTYPE):
    _computed_wide(_overload, has_arguments_dtype=False)


def _scattered_narrow(overload: Any) -> None:
    """What is only put somewhere, or added up or multiplied modulo 256, may have a sign."""
    wide, scatter = TABLE[overload], placing_decompositions.TABLE[overload]
    extrema = ("amax", "amin")

    def narrow(x: _Tensor, dim: int, index: _Tensor, source: Any, *how: Any, **named: Any) -> Any:
        is_put = overload.overloadpacket is aten.scatter and not how and not named
        is_wrapped = x.dtype in _BYTES and not any(one in extrema for one in (*how, *named.values()))
        if (not is_put and not is_wrapped) or x.dtype not in _NARROW:
            return wide(x, dim, index, source, *how, **named)
        if "mean" in (*how, *named.values()):
            return placing_decompositions.scattered_mean(x, dim, index, source, **named)
        one = _wide(source, _NARROW, torch.int8)
        one = one if isinstance(one, torch.Tensor) else _wrapped(int(one), torch.int8)
        found = scatter(x.to(torch.int8), dim, index, one, *how, **named)
        return wide(x, dim, index, source, *how, **named) if found is NotImplemented else found.to(x.dtype)

    TABLE[overload] = narrow


for _overload in (aten.scatter.src, aten.scatter.value, aten.scatter_add.default, aten.scatter_reduce.two):
    _scattered_narrow(_overload)


@TABLE.of(aten.constant_pad_nd.default)
def _pad(x: _Tensor, pad: Sequence[Any], value: Any = 0) -> Any:
    if x.dtype is not torch.uint8:
        return NotImplemented
    return aten.constant_pad_nd.default(x.to(torch.int8), pad, _wrapped(int(value), torch.int8)).to(x.dtype)


def _of_bools(overload: Any) -> None:
    def decompose(x: _Tensor, *others: Any) -> Any:
        return overload(x != 0, *others).to(torch.uint8) if x.dtype == torch.uint8 else NotImplemented

    TABLE[overload] = decompose


for _overload in (aten.any.default, aten.any.dim, aten.any.dims, aten.all.default, aten.all.dim, aten.all.dims):
    _of_bools(_overload)


def _joined(overload: Any) -> None:
    def join(parts: Sequence[_Tensor], dim: int = 0) -> Any:
        dtypes = {part.dtype for part in parts}
        if len(dtypes) == 1 or not dtypes.intersection(_NARROW):
            return NotImplemented
        dtype = reduce(torch.promote_types, dtypes)
        return overload([part.to(dtype) for part in parts], dim)

    TABLE[overload] = join


for _overload in (aten.cat.default, aten.stack.default):
    _joined(_overload)


def _power(x: Any, exponent: Any) -> Any:
    """torch-mlir has powers of floats only."""
    dtypes = [one.dtype for one in (x, exponent) if isinstance(one, torch.Tensor)]
    if isinstance(x, float) or isinstance(exponent, float) or any(dtype not in _INTEGERS for dtype in dtypes):
        return NotImplemented
    if isinstance(exponent, int):
        return _power_of_known(x, exponent) if exponent >= 0 else NotImplemented
    dtype = torch.result_type(x, exponent)
    base = torch.full((), x, dtype=dtype) if isinstance(x, int) else x.to(dtype)
    is_odd = exponent % 2 == 1
    found = torch.where(base == 1, 1, torch.where(base == -1, torch.where(is_odd, -1, 1), 0))  # below zero
    found, rest = torch.where(exponent < 0, found, 1).to(dtype), exponent.clamp(min=0)
    for _ in range(torch.iinfo(exponent.dtype).bits - 1):
        found = torch.where(rest % 2 == 1, found * base, found)
        base, rest = base * base, rest // 2
    return found


def _power_of_known(x: _Tensor, exponent: int) -> Any:
    found = torch.ones_like(x)
    while exponent:
        found = found * x if exponent & 1 else found
        x, exponent = x * x, exponent >> 1
    return found


def _after_bytes(overload: Any, function: Callable[..., Any]) -> None:
    first = TABLE[overload]

    def decompose(*arguments: Any) -> Any:
        found = first(*arguments)
        return function(*arguments) if found is NotImplemented else found

    TABLE[overload] = decompose


for _overload in (aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar):
    _after_bytes(_overload, _power)
TABLE[aten.__rshift__.Tensor] = aten.bitwise_right_shift.Tensor
TABLE[aten.__rshift__.Scalar] = aten.bitwise_right_shift.Tensor_Scalar


@TABLE.of(aten.arange.start_step)
def _arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **_: Any) -> Any:
    return torch.arange(start, end, step).to(dtype) if dtype in _BYTES else NotImplemented


# torch-mlir makes constants of bytes ones that have a sign.


@TABLE.of(aten.full.default)
def _full(size: Sequence[Any], value: Any, dtype: Any = None, **_: Any) -> Any:
    """Not by a constant of another type, since that would be folded."""
    if dtype is not torch.uint8:
        return NotImplemented
    return torch.arange(value, value + 1).to(dtype).reshape([1] * len(size)).expand(size)


@TABLE.of(aten.new_full.default, aten.full_like.default, aten.fill.Scalar)
def _new_full(x: _Tensor, *size_and_value: Any, dtype: Any = None, **_: Any) -> Any:
    *size, value = size_and_value
    dtype = dtype or x.dtype
    return torch.full(size[0] if size else x.shape, value, dtype=dtype) if dtype is torch.uint8 else NotImplemented


@TABLE.of(aten.new_ones.default, aten.ones_like.default)
def _new_ones(x: _Tensor, *size: Any, dtype: Any = None, **_: Any) -> Any:
    return _new_full(x, *size, 1, dtype=dtype)
