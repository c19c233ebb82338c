"""Arrays on the command line: read, shown, written, and compared with those of a build for the host."""

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from devscope.agreement import TOLERANCE, Array, as_numbers, relative_error
from devscope.api import CompileOptions, build
from devscope.cli.files import STDIN, read_input, write_output
from devscope.dialects.target import device_types
from devscope.errors import DevscopeError, InputError, Note
from devscope.runtime.dtypes import ENTRY_DTYPES
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry
from devscope.source import PipedSource, read_all

_MAGIC = b"\x93NUMPY"
_SHOWN = 20
"""Arrays of more elements are shown in part."""


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
        limit = TOLERANCE.get(spec.dtype, 0.0)
        verdict = "agrees with" if error <= limit else "DIFFERS from"
        lines.append(f"check: result{number} {verdict} the host (relative error {error:.2e}, limit {limit:.0e})")
        if not error <= limit:
            differing.append(f"result{number}")
    error = DevscopeError(f"{', '.join(differing)}: not what the host computes") if differing else None
    return lines, error
