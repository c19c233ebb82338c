"""Files that are replaced in one step."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from devscope.errors import ExecutableFormatError


@contextlib.contextmanager
def replaced_file(target: Path) -> Generator[BinaryIO]:
    """An empty file beside ``target`` that takes its place, and its permissions, at the end of the block.

    After an exception ``target`` is as it was. What processes that died in such a block have left is removed: a
    lock says of a file whether its writer lives. Raises :class:`OSError`.
    """
    _remove_leftovers(target)
    temporary, file = _locked(target)
    with file:
        try:
            yield file
            file.flush()
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def saved_file(target: Path) -> Generator[BinaryIO]:
    """As `replaced_file`, on the disk at the end. Raises ExecutableFormatError if it cannot be written."""
    if target.exists() and not target.is_file():
        raise ExecutableFormatError(f"'{target}' cannot be written: it is not a regular file")
    try:
        with replaced_file(target) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ExecutableFormatError(
            f"'{target}' cannot be written: {error.strerror or error}",
            notes=["choose a directory that exists, with room and the right to write"],
        ) from None


def _locked(target: Path) -> tuple[Path, BinaryIO]:
    while True:
        temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
        file = open(temporary, "x+b")  # noqa: SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # another process came before the lock, and removed it


def _remove_leftovers(target: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(target.parent)):
            with contextlib.suppress(OSError), open(target.with_name(name), "rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(target.with_name(name))
