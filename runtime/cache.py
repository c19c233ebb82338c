"""The on-disk cache of compiled programs and of what drivers build from their kernels.

Everything here is best effort: a cache that cannot be read or written makes programs start slower, it never
makes them fail. Several processes may use one cache at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from devscope.errors import ExecutableFormatError, OptionError
from devscope.runtime.program import Program

DIRECTORY_VARIABLE = "DEVSCOPE_CACHE_DIR"
"""Environment variable: another directory for the cache, or "off" for none."""

DEFAULT_MAX_BYTES = 1 << 30

Entry = TypeVar("Entry", bytes, Program)

_VERSION = "v1"
_BLOB_MAGIC = b"devscope-blob-1\n"
_KEY = re.compile(r"[0-9a-f]{16,128}")
_TEMPORARY = ".tmp-"
# A temporary file this old (seconds) belongs to a process that died.
_STALE = 3600.0


def open_cache() -> DiskCache | None:
    """The cache in the user's cache directory, or where ``DEVSCOPE_CACHE_DIR`` says; None when it is off."""
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if directory == "off":
        return None
    if not directory:
        from platformdirs import user_cache_dir

        directory = user_cache_dir("devscope")
    return DiskCache(Path(directory))


def environment_key() -> str:
    """What a compiled program depends on besides its source and options: versions, and this CPU.

    Part of the digest that callers make keys of.
    """
    import llvmlite

    from devscope.runtime.file_format import FORMAT_VERSION, devscope_version
    from devscope.runtime.native.abi import ABI_VERSION

    versions = (devscope_version(), FORMAT_VERSION, ABI_VERSION, llvmlite.__version__)
    return "|".join([*map(str, versions), sys.platform, _processor()])


# Lines of x86 and of Arm; the others change while a machine runs.
_PROCESSOR_LINE = re.compile(
    r"^(?:vendor_id|cpu family|model|model name|stepping|flags|Features|CPU \w+)\s*:.*$", re.MULTILINE
)


def _processor() -> str:
    """This CPU with its features: from the kernel where it tells, else from LLVM, which is large to load."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        first, _, _ = Path("/proc/cpuinfo").read_text().partition("\n\n")
        if re.search(r"^(?:flags|Features)\s*:", first, re.MULTILINE):
            return "\n".join(_PROCESSOR_LINE.findall(first))
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


class DiskCache:
    """Entries under ``root``, dropped in the order of their last use when they exceed ``max_bytes``.

    Keys are hexadecimal digests (16 to 128 lower case digits) that the caller makes of everything an entry
    depends on; :class:`OptionError` for anything else.
    """

    def __init__(self, root: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.root = root / _VERSION
        self.max_bytes = max_bytes

    def load_blob(self, key: str) -> bytes | None:
        """The bytes stored under ``key``; None when there are none or they are damaged."""
        return self._load(self._path(key, "bin"), _read_blob)

    def store_blob(self, key: str, blob: bytes) -> None:
        """Stores bytes under ``key``, replacing what was there."""
        data = _BLOB_MAGIC + hashlib.sha256(blob).digest() + blob
        self._store(self._path(key, "bin"), lambda path: path.write_bytes(data))

    def load_program(self, key: str) -> Program | None:
        """The program stored under ``key``; None when there is none or it is damaged."""
        from devscope.runtime.file_format import read_program

        return self._load(self._path(key, "dsx"), read_program)

    def store_program(self, key: str, program: Program) -> None:
        """Stores a program under ``key``, replacing what was there."""
        from devscope.runtime.file_format import write_archive

        self._store(self._path(key, "dsx"), lambda path: write_archive(program, path))

    def _path(self, key: str, suffix: str) -> Path:
        if not _KEY.fullmatch(key):
            raise OptionError(
                f"'{key}' is not a cache key", notes=["a cache key is a digest of 16 to 128 digits 0-9a-f"]
            )
        return self.root / key[:2] / f"{key}.{suffix}"

    def _load(self, path: Path, read: Callable[[Path], Entry]) -> Entry | None:
        if not path.exists():
            return None
        try:
            entry = read(path)
        except OSError:  # which says nothing of what is in the file
            return None
        except ExecutableFormatError:
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return entry

    def _store(self, path: Path, write: Callable[[Path], Any]) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
            os.close(handle)
            temporary = Path(name)
            try:
                write(temporary)
                os.replace(temporary, path)
            finally:
                _remove(temporary)
            self._evict()

    def _evict(self) -> None:
        """Removes what dead processes left, then the least recently used entries until the rest fits."""
        entries = self._entries()
        now = time.time()
        for path, modified, _ in entries:
            if path.name.startswith(_TEMPORARY) and now - modified > _STALE:
                _remove(path)
        total = sum(size for _, _, size in entries)
        for path, _, size in sorted(entries, key=lambda entry: entry[1]):
            if total <= self.max_bytes:
                break
            if not path.name.startswith(_TEMPORARY):
                _remove(path)
                total -= size

    def _entries(self) -> list[tuple[Path, float, int]]:
        """(path, time of last use, bytes) of every file, those of other processes' writers included."""
        found: list[tuple[Path, float, int]] = []
        for path in self.root.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((path, status.st_mtime, status.st_size))
        return found


def _read_blob(path: Path) -> bytes:
    data = path.read_bytes()
    head = len(_BLOB_MAGIC) + hashlib.sha256().digest_size
    blob = data[head:]
    if data[:head] != _BLOB_MAGIC + hashlib.sha256(blob).digest():
        raise ExecutableFormatError(f"'{path}' is damaged")
    return blob


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
