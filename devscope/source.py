"""What users give as a program: a path, MLIR text, bytecode, or a module of the bindings."""

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devscope.errors import InputError

_SUFFIXES = (".mlir", ".mlirbc", ".bc", ".dsx")
_EXECUTABLE_MAGIC = b"PK\3\4"


def source_path(source: Any) -> Path | None:
    """The path that ``source`` is; None for text, bytecode and modules.

    A string is a path unless it looks like MLIR: text of any program has several lines or a bracket.
    Raises InputError when there is no such file, or for a source of no legal type.
    """
    if isinstance(source, os.PathLike):
        path = Path(os.fsdecode(source))
    elif isinstance(source, str):
        if not _looks_like_path(source):
            return None
        path = Path(source)
    elif isinstance(source, bytes) or hasattr(source, "operation"):
        return None
    else:
        raise InputError(
            f"a program cannot be an object of type {type(source).__name__}",
            notes=["give a path, MLIR text or bytecode, or a module of the MLIR bindings"],
        )
    require_readable(path)
    return path


def _looks_like_path(text: str) -> bool:
    if not text.strip() or "\n" in text or "\0" in text:
        return False
    return text.endswith(_SUFFIXES) or os.path.exists(text) or not any(mark in text for mark in "({#!")


@contextmanager
def reading(path: str | Path) -> Generator[None]:
    """Raises InputError with the system's reason when ``path`` cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read '{path}': {reason}") from None


def require_readable(path: str | Path) -> None:
    """Raise InputError with the system's reason unless ``path`` is a file that can be read."""
    with reading(path), open(path, "rb"):
        pass


def is_executable_file(path: Path) -> bool:
    """Whether a file is, or by its name claims to be, a compiled program. Raises InputError."""
    if path.suffix == ".dsx":
        return True
    with reading(path), path.open("rb") as file:
        return file.read(len(_EXECUTABLE_MAGIC)) == _EXECUTABLE_MAGIC


def source_digest(source: Any) -> str | None:
    """SHA-256 of what a source says, for cache keys; None if it is a module object. Raises InputError.

    A file is read piece by piece: with large constants it must not stand in memory as a whole.
    """
    path = source_path(source)
    if path is not None:
        with reading(path), path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    data = encoded(source) if isinstance(source, str) else source
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else None


def encoded(text: str) -> bytes:
    """UTF-8 of a program's text. Raises InputError for half of a surrogate pair, which UTF-8 cannot express."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(f"the program's text is not Unicode: {error.reason} in line {line}") from None
