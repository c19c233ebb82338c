"""Decompositions for integers of 8 bits, and powers of integers.

torch-mlir widens bytes with their sign whether they have one or not, and ends the process for some products and
divisions of them. So they are computed as int64, and made bytes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_BYTES = (torch.uint8, torch.int8)
_INTEGERS = (*_BYTES, torch.int16, torch.int32, torch.int64)

_OF_ARGUMENTS_DTYPE = (
    "abs remainder floor_divide div.Tensor_mode div.Scalar_mode max.default max.dim min.default min.dim sort topk "
    "bitwise_right_shift pow.Tensor_Scalar pow.Tensor_Tensor mul fmod"
)
"""Operations whose result, or the first of two, has the dtype of their arguments."""
_OF_OTHER_DTYPE = "sum.default sum.dim_IntList prod.default prod.dim_int mean div.Tensor div.Scalar"


def _overloads(names: str) -> list[Any]:
    found: list[Any] = []
    for name in names.split():
        packet, _, one = name.partition(".")
        kinds = getattr(aten, packet).overloads()
        found += [getattr(getattr(aten, packet), kind) for kind in kinds if kind == one or not one]
    return [overload for overload in found if not any(part.is_out for part in overload._schema.arguments)]


def _computed_wide(overload: Any, *, has_arguments_dtype: bool) -> None:
    def wide(*arguments: Any, **named: Any) -> Any:
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        if not any(one.dtype in _BYTES for one in tensors):
            return NotImplemented
        dtype = tensors[0].dtype
        for one in arguments[1:2] if _has_operand(overload) else ():
            dtype = torch.result_type(tensors[0], one)
        found = overload(
            *(
                one.to(torch.int64) if isinstance(one, torch.Tensor) and one.dtype in _BYTES else one
                for one in arguments
            ),
            **named,
        )
        if not has_arguments_dtype:
            return found
        return (found[0].to(dtype), *found[1:]) if isinstance(found, tuple | list) else found.to(dtype)

    TABLE[overload] = wide


def _has_operand(overload: Any) -> bool:
    """Whether the second argument is an operand, as the first is."""
    return any(part.name in ("other", "exponent") for part in overload._schema.arguments[1:2])


for _overload in _overloads(_OF_ARGUMENTS_DTYPE):
    _computed_wide(_overload, has_arguments_dtype=True)
for _overload in _overloads(_OF_OTHER_DTYPE):
    _computed_wide(_overload, has_arguments_dtype=False)


def _of_bools(overload: Any) -> None:
    def decompose(x: _Tensor, *others: Any) -> Any:
        return overload(x != 0, *others).to(torch.uint8) if x.dtype == torch.uint8 else NotImplemented

    TABLE[overload] = decompose


for _overload in (aten.any.default, aten.any.dim, aten.any.dims, aten.all.default, aten.all.dim, aten.all.dims):
    _of_bools(_overload)


def _of_one_dtype(overload: Any) -> None:
    def join(parts: Sequence[_Tensor], dim: int = 0) -> Any:
        dtypes = {part.dtype for part in parts}
        if len(dtypes) == 1 or torch.uint8 not in dtypes:
            return NotImplemented
        dtype = reduce(torch.promote_types, dtypes)
        return overload([part.to(dtype) for part in parts], dim)

    TABLE[overload] = join


for _overload in (aten.cat.default, aten.stack.default):
    _of_one_dtype(_overload)


def _power(x: _Tensor, exponent: Any) -> Any:
    """torch-mlir has powers of floats only."""
    if x.dtype not in _INTEGERS or not isinstance(exponent, int) or exponent < 0:
        return NotImplemented
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


_after_bytes(aten.pow.Tensor_Scalar, _power)
TABLE[aten.__rshift__.Tensor] = aten.bitwise_right_shift.Tensor
TABLE[aten.__rshift__.Scalar] = aten.bitwise_right_shift.Tensor_Scalar
