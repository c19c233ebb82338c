"""The element types of data that programs take and give, and arrays of these in numpy."""

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}
"""Every dtype that a constant may have, and elements of its size in memory."""

EXTENSION_TYPES = {
    "bf16": "bfloat16",
    "f8E3M4": "float8_e3m4",
    "f8E4M3": "float8_e4m3",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
    "i2": "int2",
    "i4": "int4",
    "ui2": "uint2",
    "ui4": "uint4",
}
"""The dtypes that numpy lacks, by their names in ``ml_dtypes``: an element of each is one of that package's in
memory, or its bits."""

ENTRY_DTYPES: dict[str, np.dtype[Any]] = {
    **DTYPES,
    **{f"ui{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{name: np.dtype(np.uint8) for name in EXTENSION_TYPES if name not in DTYPES},
    "i2": np.dtype(np.int8),
    "i4": np.dtype(np.int8),
}
"""Every dtype that an argument or a result may have, and elements of its size in memory."""


@cache
def array_dtype(name: str) -> np.dtype[Any]:
    """Of arrays that programs give: of those that numpy lacks that of ``ml_dtypes`` if it is installed, else of
    their bits."""
    if name in EXTENSION_TYPES:
        with suppress(ImportError):
            import ml_dtypes

            found = getattr(ml_dtypes, EXTENSION_TYPES[name], None)
            if found is not None:
                return np.dtype(found)
    return ENTRY_DTYPES[name]
