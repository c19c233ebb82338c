"""Reading and writing files: output appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from devscope.errors import InputError


def write_output(path: str, data: str | bytes) -> None:
    """Writes to ``path``, or to standard output for ``-``.

    A regular file is written beside its final place and renamed, so that no reader ever sees half of it.
    Raises InputError with the system's reason.
    """
    content = data.encode() if isinstance(data, str) else data
    if path == "-":
        _write_stdout(content)
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # a pipe or /dev/null: nothing to rename
        else:
            _replace(target, content)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def require_place(path: Path) -> None:
    """Raise InputError when no file can be written to ``path``, before the work that would fill it."""
    folder = path.parent
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"folder '{folder}' does not exist"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "permission denied"
    else:
        return
    raise InputError(f"cannot write '{path}': {reason}")


def _replace(target: Path, content: bytes) -> None:
    final = target.resolve()
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
        if final.exists():
            shutil.copymode(final, temporary)
        temporary.replace(final)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _write_stdout(content: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_input(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises InputError with the system's reason."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
