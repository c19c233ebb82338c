"""Functions of floats of 16 bits: computed in f32 and rounded once, as PyTorch does.

torch-mlir writes them as several operations, each of which rounds: of a small number the rest of ``elu`` is lost.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_NARROW = (torch.float16, torch.bfloat16)


def _in_single(overload: Any) -> None:
    @TABLE.of(overload)
    def compute(*arguments: Any, **named: Any) -> Any:
        dtypes = {one.dtype for one in arguments if isinstance(one, torch.Tensor)}
        if len(dtypes) != 1 or not dtypes.issubset(_NARROW) or named.get("dtype") not in (None, *dtypes):
            return NotImplemented
        named.pop("dtype", None)
        wide = (one.float() if isinstance(one, torch.Tensor) else one for one in arguments)
        return overload(*wide, **named).to(dtypes.pop())


for _overload in (
    *(aten.elu.default, aten.sigmoid.default, aten.rsqrt.default),
    *(aten.leaky_relu.default, aten.polygamma.default),
    *(aten.hypot.default, aten.logaddexp.default, aten.logaddexp2.default),
    *(aten.cumsum.default, aten.cumprod.default, aten.logcumsumexp.default),
    *(aten.prod.default, aten.prod.dim_int, aten.linalg_vector_norm.default),
    *(aten.norm.Scalar, aten.norm.ScalarOpt_dim),
):
    _in_single(_overload)


def _by_number(overload: Any) -> None:
    """PyTorch does not round factors and divisors to 16 bits."""

    @TABLE.of(overload)
    def compute(x: Any, y: Any) -> Any:
        if not isinstance(y, int | float) or x.dtype not in _NARROW or _rounded(y, x.dtype) == y:
            return NotImplemented
        return overload(x.float(), y).to(x.dtype)


def _plus_product(overload: Any) -> None:
    """PyTorch rounds ``alpha``, and not the product that is added."""

    @TABLE.of(overload)
    def compute(x: Any, y: Any, *, alpha: Any = 1) -> Any:
        dtypes = {getattr(one, "dtype", None) for one in (x, y)}
        if alpha == 1 or len(dtypes) > 1 or not dtypes.issubset(_NARROW):
            return NotImplemented
        return overload(x.float(), y.float(), alpha=_rounded(alpha, x.dtype)).to(x.dtype)


def _rounded(number: float, dtype: torch.dtype) -> float:
    if not math.isfinite(number):
        return number
    mantissa, exponent = math.frexp(number)
    digits = 2 / torch.finfo(dtype).eps
    return math.ldexp(round(mantissa * digits) / digits, exponent)


for _overload in (aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar):
    _by_number(_overload)
for _overload in (aten.add.Tensor, aten.sub.Tensor):
    _plus_product(_overload)
