"""Functions of floats of 16 bits: computed in f32 and rounded once, as PyTorch does.

torch-mlir writes them as several operations, each of which rounds: of a small number the rest of ``gelu`` is lost.
"""

from __future__ import annotations

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
    *(aten.hypot.default, aten.logaddexp.default, aten.logaddexp2.default),
    *(aten.cumsum.default, aten.cumprod.default, aten.logcumsumexp.default),
    *(aten.prod.default, aten.prod.dim_int, aten.linalg_vector_norm.default),
    *(aten.norm.Scalar, aten.norm.ScalarOpt_dim),
):
    _in_single(_overload)
