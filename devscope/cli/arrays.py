"""Arrays on the command line: made, read, shown and written."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.cli.files import write_output
from devscope.errors import InputError
from devscope.runtime.program import Entry, TensorSpec

Array = NDArray[Any]

_MAGIC = b"\x93NUMPY"
_INTEGERS = 4
"""Random integers are smaller than this: they often serve as indices."""
_SHOWN = 20
"""Arrays of more elements are shown in part."""


def random_array(seed: Sequence[int], spec: TensorSpec, dynamic: int) -> Array:
    """A random argument; dynamic dimensions have size ``dynamic``. Raises InputError when it has no room."""
    shape = [dynamic if size is None else size for size in spec.shape]
    try:
        return _random(np.random.default_rng(seed), spec.dtype, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise InputError(f"cannot make a random array of shape {shape}: {error}") from None


def _random(generator: np.random.Generator, dtype: str, shape: Sequence[int]) -> Array:
    match dtype:
        case "i1":
            return generator.integers(0, 2, shape).astype(np.bool_)
        case "bf16":
            wide = generator.standard_normal(shape).astype(np.float32)
            return (wide.view(np.uint32) >> 16).astype(np.uint16)
        case "index":
            return generator.integers(0, _INTEGERS, shape)
        case _ if dtype.startswith("f"):
            return generator.standard_normal(shape).astype(f"f{int(dtype[1:]) // 8}")
        case _:
            return generator.integers(0, _INTEGERS, shape).astype(f"i{int(dtype[1:]) // 8}")


def read_array(path: str) -> Array:
    """The array in a ``.npy`` file, in this machine's byte order. Raises InputError."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError(f"'{path}' is not a .npy file", notes=["numpy.save writes such files"])
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False)
            return array.astype(array.dtype.newbyteorder("="), copy=False)
    except (OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot read the array '{path}': {reason}") from None


def as_numbers(array: Any, dtype: str) -> Array:
    """A result as numbers that numpy can print and compare: bf16 comes as its bits, or in a dtype of its own."""
    array = np.asarray(array)
    if dtype != "bf16":
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def print_results(entry: Entry, results: Sequence[Any]) -> None:
    """Type and elements of each result; large ones in part."""
    for number, (spec, result) in enumerate(zip(entry.outputs, results, strict=True)):
        sizes = [str(size) for size in np.shape(result)]
        print(f"result{number}: {'x'.join([*sizes, spec.dtype])}")
        print(np.array2string(as_numbers(result, spec.dtype), threshold=_SHOWN, precision=6))


def save_results(path: str, entry: Entry, results: Sequence[Any]) -> None:
    """Write ``result0``, ``result1``, ... as a ``.npz`` file; bf16 as its bits. Raises InputError."""
    arrays = {
        f"result{number}": np.asarray(result).view(np.uint16) if spec.dtype == "bf16" else np.asarray(result)
        for number, (spec, result) in enumerate(zip(entry.outputs, results, strict=True))
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_output(path, buffer.getvalue())
