"""Decompositions of ``quantized_decomposed``, what programs that PyTorch has quantised consist of.

torch-mlir has those whose scale is a number, and those of channels; here are the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

_Tensor = torch.Tensor
_MODULE = "torch.ao.quantization.fx._decomposed"
_AS_PYTORCH = (
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "quantize_per_token",
    "dequantize_per_token",
)
"""Those whose functions are of tensors alone."""


def table() -> dict[Any, Callable[..., Any]]:
    """Of nothing as long as nobody has made the operations."""
    module = sys.modules.get(_MODULE)
    if module is None:
        return {}
    ops: Any = torch.ops.quantized_decomposed
    return {
        ops.quantize_per_tensor.tensor: _quantise,
        ops.quantize_per_tensor.tensor2: _quantise,
        ops.dequantize_per_tensor.tensor: _dequantise,
        ops.dequantize_per_tensor.tensor2: _dequantise,
        ops.choose_qparams.tensor: _range,
        ops.choose_qparams_symmetric.tensor: _symmetric_range,
        ops.convert_element_type.no_fuse: _convert,
        **{getattr(ops, name).default: getattr(module, name) for name in _AS_PYTORCH},
    }


def _convert(x: _Tensor, dtype: torch.dtype) -> _Tensor:
    return x.to(dtype)


def _number(x: _Tensor) -> _Tensor:
    """As one that Python has."""
    return x.reshape(()).to(torch.float64)


def _quantise(x: _Tensor, scale: _Tensor, zero: _Tensor, least: Any, most: Any, dtype: torch.dtype) -> _Tensor:
    x, zero = x.to(torch.float32), zero.reshape(())
    rounded = torch.round(x * (1.0 / _number(scale)).to(torch.float32)) + zero
    return torch.clamp(rounded, *(one if isinstance(one, int) else one.reshape(()) for one in (least, most))).to(
        dtype
    )


def _dequantise(
    x: _Tensor,
    scale: _Tensor,
    zero: _Tensor,
    least: Any,
    most: Any,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> _Tensor:
    of = out_dtype or torch.float32
    return ((x.to(of) - zero.reshape(())).to(torch.float32) * _number(scale).to(torch.float32)).to(of)


def _ends(x: _Tensor) -> tuple[_Tensor, _Tensor]:
    least, most = torch.aminmax(x)
    return least.clamp(max=0), most.clamp(min=0)


def _range(x: _Tensor, least: int, most: int, eps: float, dtype: torch.dtype) -> Any:
    low, high = _ends(x)
    scale = torch.maximum((high - low) / float(most - least), torch.full((1,), eps))
    zero = least - torch.round(low / scale).to(torch.int32)
    return scale.to(torch.float64), zero.clamp(least, most).to(torch.int64)


def _symmetric_range(x: _Tensor, least: int, most: int, eps: float, dtype: torch.dtype) -> Any:
    low, high = _ends(x)
    scale = torch.maximum(torch.maximum(-low, high) / (float(most - least) / 2), torch.full((1,), eps))
    zero = torch.full((1,), 128 if dtype == torch.uint8 else 0)
    return scale.to(torch.float64), zero
