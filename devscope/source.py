"""What users give as a program: a path, MLIR text, bytecode, or a module of the bindings."""

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

from devscope.errors import InputError
from devscope.frontends import DeferredSource, ImportedSource

_SUFFIXES = (".mlir", ".mlirbc", ".bc", ".stablehlo", ".pt2", ".dsx")
EXECUTABLE_MAGIC = b"PK\3\4"
_MOST_PIPED = 1 << 30
"""Bytes that are read from what is no file: it may never end (/dev/zero)."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class PipedSource:
    """A program from a pipe, which was read: that can be done once only. ``name`` stands in messages."""

    name: str
    data: bytes

    @property
    def is_executable(self) -> bool:
        """Whether it is a compiled program."""
        return self.data.startswith(EXECUTABLE_MAGIC)


def read_once(source: Any) -> Any:
    """``source``, or if it leads to a pipe or a terminal, a `PipedSource`. Raises as `source_path` does."""
    if isinstance(source, ImportedSource | DeferredSource):
        return source
    path = source_path(source)
    if path is None or path.is_file():
        return source
    with reading(path), path.open("rb") as stream:
        return PipedSource(str(path), read_all(stream, str(path)))


def read_all(stream: BinaryIO, name: str) -> bytes:
    """What is in a file, or comes through a pipe. Raises InputError when that is too much to be held in memory."""
    if _is_regular(stream):
        return stream.read()
    pieces: list[bytes] = []
    left = _MOST_PIPED
    while piece := stream.read(_PIECE):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise InputError(
                f"cannot read '{name}': it is no file, and more than {_MOST_PIPED >> 30} GiB came from it",
                notes=["so much is read from files only: write it to one"],
            )
    return b"".join(pieces)


def _is_regular(stream: BinaryIO) -> bool:
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except ValueError:  # it has no descriptor
        return False


def source_path(source: Any) -> Path | None:
    """The path that ``source`` is; None for text, bytecode, modules, and what was read already.

    A string is a path unless it looks like MLIR: text of any program has several lines or a bracket.
    Raises InputError when there is no such file, or for a source of no legal type.
    """
    if isinstance(source, os.PathLike):
        path = Path(os.fsdecode(source))
    elif isinstance(source, str):
        if not _looks_like_path(source):
            return None
        path = Path(source)
    elif isinstance(source, bytes | PipedSource | ImportedSource | DeferredSource):
        return None
    else:
        raise InputError(
            f"a program cannot be an object of type {type(source).__name__}",
            notes=["give a path, MLIR text or bytecode, a module of the MLIR bindings or of xDSL, or a function"],
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
    # A pipe would wait for its writer to be opened, and the writer gets an error when it is closed again.
    with reading(path):
        if Path(path).is_file() or not os.access(path, os.R_OK) or Path(path).is_dir():
            with open(path, "rb"):
                pass


def is_executable_file(path: Path) -> bool:
    """Whether a file is, or by its name claims to be, a compiled program. Raises InputError."""
    if path.suffix in (".dsx", ".pt2"):  # both are zip archives
        return path.suffix == ".dsx"
    with reading(path), path.open("rb") as file:
        return file.read(len(EXECUTABLE_MAGIC)) == EXECUTABLE_MAGIC


def source_digest(source: Any) -> str:
    """SHA-256 of what a source says, for cache keys. Raises InputError.

    A file is read piece by piece: with large constants it must not stand in memory as a whole.
    """
    path = source_path(source)
    if path is not None:
        with reading(path), path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if isinstance(source, ImportedSource):
        beside = repr((source.names, source.structures, source.dtypes, source.state)).encode()
        digest = hashlib.sha256(b"".join((source.data, beside)))
        for name, data in source.literals.items():
            digest.update(f"{name} {data.nbytes}".encode())
            digest.update(data)
        return digest.hexdigest()
    if isinstance(source, DeferredSource):
        return source.digest()
    if isinstance(source, PipedSource):
        source = source.data
    return hashlib.sha256(encoded(source) if isinstance(source, str) else source).hexdigest()


def encoded(text: str) -> bytes:
    """UTF-8 of a program's text. Raises InputError for half of a surrogate pair, which UTF-8 cannot express."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(f"the program's text is not Unicode: {error.reason} in line {line}") from None
