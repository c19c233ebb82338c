"""Element types of ONNX, of MLIR and of numpy; what an import makes, and that there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


class Refused(Exception):
    """What cannot be imported, in words that follow ``cannot import ONNX: ``."""


class UnknownShape(Refused):
    """What is refused for a shape that depends on data: torch-mlir may know what to do."""


class SizesDiffer(Exception):
    """Shapes that ONNX does not make one of."""


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all have when they are repeated as ONNX says. Raises `SizesDiffer`."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " and ".join("x".join(map(str, shape)) for shape in shapes)
        raise SizesDiffer(f"sizes {texts} do not fit each other") from None


@dataclass(frozen=True)
class Imported:
    """A model as MLIR text: the function ``main``, the element types of its arguments and results, and the data of
    its resources by their names."""

    text: str
    dtypes: tuple[list[str], list[str]]
    literals: Mapping[str, memoryview]


#: By the numbers of ``onnx.TensorProto.DataType``.
ELEMENTS = {
    **{1: "f32", 2: "ui8", 3: "i8", 4: "ui16", 5: "i16", 6: "i32", 7: "i64", 9: "i1", 10: "f16", 11: "f64"},
    **{12: "ui32", 13: "ui64", 14: "complex<f32>", 15: "complex<f64>", 16: "bf16", 17: "f8E4M3FN"},
    **{18: "f8E4M3FNUZ", 19: "f8E5M2", 20: "f8E5M2FNUZ", 21: "ui4", 22: "i4", 23: "f4E2M1FN", 25: "ui2", 26: "i2"},
}

NAMES_OF_OTHERS = {8: "strings", 24: "8-bit exponents (float8e8m0)"}

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"i{bits // 8}").type for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"u{bits // 8}").type for bits in (8, 16, 32, 64)},
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
    "i2": ml_dtypes.int2,
    "ui2": ml_dtypes.uint2,
}

_WIDTH = re.compile(r"\d+")


def width(element: str) -> int:
    """Bits of an element; of a part, for complex numbers."""
    found = _WIDTH.search(element)
    assert found is not None
    return int(found[0])


def is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))


def is_code(element: str) -> bool:
    """Whether it is a float of 8 bits or fewer, that is, a code of a number to compute with."""
    return is_float(element) and width(element) <= 8


def is_complex(element: str) -> bool:
    return element.startswith("complex")


def is_unsigned(element: str) -> bool:
    return element.startswith("ui")


def is_integer(element: str) -> bool:
    return element.startswith(("i", "ui")) and element != "i1"


def element_of(number: int) -> str:
    """Raises `Refused`."""
    found = ELEMENTS.get(number)
    if found is None:
        raise Refused(f"{NAMES_OF_OTHERS.get(number, f'elements of type {number}')} are not supported")
    return found
