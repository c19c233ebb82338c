"""Arrays on the command line: made, read, shown, written, and compared with those of a build for the host."""

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from devscope.api import CompileOptions, build
from devscope.cli.files import STDIN, read_input, write_output
from devscope.dialects.target import device_types
from devscope.errors import DevscopeError, InputError, Note
from devscope.runtime.dtypes import ENTRY_DTYPES, EXTENSION_TYPES
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry, TensorSpec
from devscope.source import PipedSource, read_all

Array = NDArray[Any]

_MAGIC = b"\x93NUMPY"
_INTEGERS = 4
"""Random integers are smaller than this: they often serve as indices."""
_SHOWN = 20
"""Arrays of more elements are shown in part."""
_TOLERANCE = {"f16": 2e-2, "bf16": 5e-2, "f32": 1e-4, "f64": 1e-10, "complex<f32>": 1e-4, "complex<f64>": 1e-10}
"""Largest relative error that is accepted, by dtype; integers must agree exactly."""


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
        case "complex<f32>" | "complex<f64>":
            parts = generator.standard_normal([*shape, 2])
            return parts.view(np.complex128)[..., 0].astype(ENTRY_DTYPES[dtype])
        case "f16" | "f32" | "f64":
            return generator.standard_normal(shape).astype(ENTRY_DTYPES[dtype])
        case _:  # small bits are small numbers of the other dtypes
            return generator.integers(0, _INTEGERS, shape).astype(ENTRY_DTYPES[dtype])


def read_array(path: str) -> Array:
    """The array in a ``.npy`` file or pipe, in this machine's byte order. Raises InputError."""
    name = STDIN if path == "-" else path
    try:
        with _opened(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError(f"'{name}' is not a .npy file", notes=["numpy.save writes such files"])
            file.seek(0)
            array = np.lib.format.read_array(file, allow_pickle=False)
            return array.astype(array.dtype.newbyteorder("="), copy=False)
    except (OSError, ValueError, EOFError, MemoryError, OverflowError, SyntaxError, TokenError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InputError(f"cannot read the array '{name}': {reason}") from None


def _opened(path: str) -> BinaryIO:
    """A file, which is read piece by piece, straight into the array, or what came through a pipe."""
    if path == "-":
        return io.BytesIO(read_input(path))
    file = open(path, "rb")  # noqa: SIM115
    if file.seekable():
        return file
    with file:
        return io.BytesIO(read_all(file, path))


def as_numbers(array: Any, dtype: str) -> Array:
    """A result as numbers that numpy can print and compare: bf16 comes as its bits, or in a dtype of its own."""
    array = np.asarray(array)
    if dtype not in EXTENSION_TYPES:
        return array
    if dtype != "bf16":
        return array.view(ENTRY_DTYPES[dtype])
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
        f"result{number}": np.asarray(result).view(ENTRY_DTYPES[spec.dtype])
        for number, (spec, result) in enumerate(zip(entry.outputs, results, strict=True))
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_output(path, buffer.getvalue())


def reference_results(
    source: Path | PipedSource, options: CompileOptions, entry: str, values: Sequence[Any]
) -> tuple[Any, ...]:
    """What the same program computes when it is built without devices and backends. Raises DevscopeError if it
    cannot be."""
    everything_on_host = {kind: "cpu" for kind in device_types() if kind != "cpu"}
    try:
        alone = dataclasses.replace(
            options, targets=everything_on_host, backends=(), partition="eager", costs=None
        )
        program = build(source, alone)
    except DevscopeError as error:
        error.message = f"--check compares with a build for the host alone, which fails: {error.message}"
        error.notes = (Note("run it without --check; the host runs no kernels that are written by hand"),)
        raise
    return Executable(program, cache=None).run_arrays(entry, values)


def comparison(
    entry: Entry, results: Sequence[Any], expected: Sequence[Any]
) -> tuple[list[str], DevscopeError | None]:
    """How each result compares with that of a build without devices, a line for each.

    And an error when one differs by more than rounding explains.
    """
    lines: list[str] = []
    differing: list[str] = []
    for number, spec in enumerate(entry.outputs):
        got, want = as_numbers(results[number], spec.dtype), as_numbers(expected[number], spec.dtype)
        error = relative_error(got, want)
        limit = _TOLERANCE.get(spec.dtype, 0.0)
        verdict = "agrees with" if error <= limit else "DIFFERS from"
        lines.append(f"check: result{number} {verdict} the host (relative error {error:.2e}, limit {limit:.0e})")
        if not error <= limit:
            differing.append(f"result{number}")
    error = DevscopeError(f"{', '.join(differing)}: not what the host computes") if differing else None
    return lines, error


def relative_error(got: Array, want: Array) -> float:
    """Largest absolute difference over the largest magnitude; for integers and booleans 0 or 1.

    NaNs and infinities must stand in the same places: infinite otherwise.
    """
    if got.shape != want.shape:
        return float("inf")
    is_float = want.dtype.kind in "fc"
    if np.array_equal(got, want, equal_nan=is_float):
        return 0.0
    if not is_float:
        return 1.0
    if want.dtype.kind == "c":  # as pairs: an infinite part may stand beside a finite one
        part = f"f{want.itemsize // 2}"
        got, want = (np.ascontiguousarray(array)[..., None].view(part) for array in (got, want))
    finite = np.isfinite(want)
    if not np.array_equal(np.where(finite, 0, want), np.where(np.isfinite(got), 0, got), equal_nan=True):
        return float("inf")
    wide_got, wide_want = got[finite].astype(np.float64), want[finite].astype(np.float64)
    scale = float(np.max(np.abs(wide_want), initial=0.0)) or 1.0
    return float(np.max(np.abs(wide_got - wide_want), initial=0.0)) / scale
