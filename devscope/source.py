"""What users give as a program: a path, MLIR text, bytecode, or a module of the bindings."""

from __future__ import annotations

import os
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


def require_readable(path: Path) -> None:
    """Raise InputError with the system's reason unless ``path`` is a file that can be read."""
    try:
        with path.open("rb"):
            return
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read '{path}': {reason}") from None


def is_executable_file(path: Path) -> bool:
    """Whether a file is, or by its name claims to be, a compiled program. Raises InputError."""
    if path.suffix == ".dsx":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_EXECUTABLE_MAGIC)) == _EXECUTABLE_MAGIC
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from None


def source_bytes(source: Any) -> bytes | None:
    """What a source says, for cache keys; None if it is a module object. Raises InputError."""
    path = source_path(source)
    if path is not None:
        try:
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read '{path}': {error.strerror or error}") from None
    if isinstance(source, str):
        return encoded(source)
    return source if isinstance(source, bytes) else None


def encoded(text: str) -> bytes:
    """UTF-8 of a program's text. Raises InputError for half of a surrogate pair, which UTF-8 cannot express."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(f"the program's text is not Unicode: {error.reason} in line {line}") from None
