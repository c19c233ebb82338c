"""Weights of PyTorch as attributes of MLIR: small ones by value, others by a name for memory that is PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch_mlir.extras.fx_importer import TORCH_DTYPE_TO_MLIR_TYPE_ASM

from devscope.errors import LoweringError

_MOST_INLINE = 16
"""Elements: what is folded away, as indices and sizes are, is that small."""
_PREFIX = "devscope_weight_"


class Weights:
    """Gives each tensor an attribute, and tensors of the same memory the same."""

    def __init__(self) -> None:
        self.data: dict[str, memoryview] = {}
        """What the names in attributes stand for."""
        self._known: dict[Any, str] = {}

    def add(self, tensor: torch.Tensor, name: str) -> str:
        """The attribute of ``tensor``, in MLIR's syntax. Raises LoweringError for one that is not plain."""
        self._require_plain(tensor, name)
        tensor = tensor.detach()
        key = tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.device
        if tensor.numel() and key in self._known:
            return self._known[key]
        with torch.no_grad():
            plain = tensor.cpu().resolve_conj().resolve_neg().contiguous()
        type_ = f"tensor<{''.join(f'{size}x' for size in plain.shape)}{attribute_dtype(plain.dtype)}>"
        array: Any = plain.reshape(-1).view(torch.uint8).numpy() if plain.numel() else b""
        data = memoryview(array)
        if plain.numel() <= _MOST_INLINE and not plain.is_complex():  # MLIR's bindings cannot parse those
            attribute = f"dense<{_elements(plain, data)}> : {type_}"
        else:
            resource = f"{_PREFIX}{len(self.data)}"
            self.data[resource] = data
            attribute = f"dense_resource<{resource}> : {type_}"
        self._known[key] = attribute
        return attribute

    def _require_plain(self, tensor: torch.Tensor, name: str) -> None:
        reason = ""
        if tensor.layout != torch.strided:
            reason = f"is sparse ({str(tensor.layout).removeprefix('torch.')})"
        elif tensor.is_quantized:
            reason = "is quantised"
        elif tensor.device.type == "meta":
            reason = "has no data: it is on the device 'meta'"
        elif tensor.dtype not in TORCH_DTYPE_TO_MLIR_TYPE_ASM:
            reason = f"has the dtype {str(tensor.dtype).removeprefix('torch.')}"
        elif not isinstance(tensor, torch.nn.Parameter | torch.nn.Buffer) and type(tensor) is not torch.Tensor:
            reason = f"is a {type(tensor).__name__}"
        if reason:
            raise LoweringError(
                f"the weight '{name}' {reason}, which a compiled program cannot have",
                notes=["weights may be dense tensors of floats, integers, bool or complex numbers"],
            )


def attribute_dtype(dtype: torch.dtype) -> str:
    """The element type of a literal of torch-mlir's."""
    return TORCH_DTYPE_TO_MLIR_TYPE_ASM[dtype]


def _elements(tensor: torch.Tensor, data: memoryview) -> str:
    """Elements of ``dense``: raw bits but for bool, which MLIR packs."""
    if not math.prod(tensor.shape):
        return ""
    if tensor.dtype == torch.bool:
        flat = ", ".join(str(bool(value)).lower() for value in tensor.reshape(-1).tolist())
        return flat if tensor.numel() == 1 else _nested(flat.split(", "), list(tensor.shape))
    return f'"0x{data.hex().upper()}"'


def _nested(elements: list[str], shape: list[int]) -> str:
    if not shape:
        return elements[0]
    step = len(elements) // shape[0]
    parts = (_nested(elements[at : at + step], shape[1:]) for at in range(0, len(elements), step))
    return f"[{', '.join(parts)}]"
