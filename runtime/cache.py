"""The on-disk cache of compiled programs and of what drivers build from their kernels.

Entries are best effort: a cache that cannot be read or written makes programs start slower, it never
makes them fail. Several processes may use one cache at once.

What is cached is run, so it has to be the user's own: the folder and every entry belong to the user, nobody else
may write to them, and no symbolic link is followed. That is looked at whenever an entry is used, on the open file;
what is not so is left alone, with one `DevscopeWarning`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from devscope.errors import DevscopeWarning, ExecutableFormatError, InputError, OptionError
from devscope.runtime.program import Program

DIRECTORY_VARIABLE = "DEVSCOPE_CACHE_DIR"
"""Environment variable: another directory for the cache, or "off" for none."""

DEFAULT_MAX_BYTES = 1 << 30

Entry = TypeVar("Entry", bytes, str, Program)
Result = TypeVar("Result")

_VERSION = "v2"
_BLOB_MAGIC = b"devscope-blob-1\n"
_KEY = re.compile(r"[0-9a-f]{16,128}")
_ENTRY = re.compile(rf"{_KEY.pattern}\.(?:bin|dsx)")
_TEMPORARY = ".tmp-"


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


@cache
def _processor() -> str:
    """This CPU with its features: from the kernel where it tells, else from LLVM, which is large to load."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        first, _, _ = Path("/proc/cpuinfo").read_text().partition("\n\n")
        if re.search(r"^(?:flags|Features)\s*:", first, re.MULTILINE):
            return "\n".join(_PROCESSOR_LINE.findall(first))
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


class _NotOurs(Exception):
    """The message: a path, and why nothing is loaded from it."""


class CacheEntry(NamedTuple):
    """A file of the cache: ``used`` is the time of its last use, in seconds since the epoch."""

    name: str
    used: float
    bytes: int


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
        return self._load(_name(key, "bin"), _read_blob)

    def store_blob(self, key: str, blob: bytes) -> None:
        """Stores bytes under ``key``, replacing what was there."""
        data = _BLOB_MAGIC + hashlib.sha256(blob).digest() + blob
        self._store(_name(key, "bin"), lambda file: file.write(data))

    def load_program(self, key: str) -> Program | None:
        """The program stored under ``key``; None when there is none or it is damaged."""
        from devscope.runtime.file_format import read_open_program

        return self._load(_name(key, "dsx"), read_open_program)

    def store_program(self, key: str, program: Program) -> None:
        """Stores a program under ``key``, replacing what was there."""
        from devscope.runtime.file_format import write_archive

        self._store(_name(key, "dsx"), lambda file: write_archive(program, file))

    def load_schedules(self) -> str | None:
        """The schedules that were tuned on this processor, as they were stored; None when there are none."""
        return self._load(_schedules_name(), _read_text)

    def update_schedules(self, change: Callable[[str], str]) -> None:
        """Stores what ``change`` makes of the schedules for this processor; of none, it is given no text.

        They are no entry: only `remove_schedules` removes them. Raises InputError if they cannot be stored.
        """
        self._keep(_schedules_name(), change)

    def remove_schedules(self) -> None:
        self._in_folder(lambda folder: _remove(_schedules_name(), folder))

    def load_machine(self) -> str | None:
        """The description of this machine that was measured and kept; None when there is none."""
        return self._load(_machine_name(), _read_text)

    def store_machine(self, text: str) -> None:
        """Stores a description for this processor, which is no entry. Raises InputError if it cannot be stored."""
        self._keep(_machine_name(), lambda _: text)

    def require_writable(self) -> None:
        """Raises InputError when nothing can be stored, before the work whose results would be."""
        if not self._in_folder(lambda folder: os.access(".", os.W_OK, dir_fd=folder), make=True):
            raise self._not_kept(self.root)

    @property
    def machine_path(self) -> Path:
        return self.root / _machine_name()

    @property
    def schedules_path(self) -> Path:
        return self.root / _schedules_name()

    def entries(self) -> list[CacheEntry]:
        """The user's entries, the least recently used first; not the files that are being written."""
        return self._in_folder(_entries) or []

    def clear(self) -> list[CacheEntry]:
        """Removes the user's entries and what dead processes left, and says which entries those were."""

        def remove(folder: int) -> list[CacheEntry]:
            _remove_leftovers(folder)
            removed = _entries(folder)
            for entry in removed:
                _remove(entry.name, folder)
            return removed

        return self._in_folder(remove) or []

    def _in_folder(self, use: Callable[[int], Result], make: bool = False) -> Result | None:
        """What ``use`` gives for the descriptor of the folder of entries.

        None when the system does not let it, and with a warning when a folder or file is not the user's alone, or
        a file is named as the folder.
        """
        try:
            if make:
                self.root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _opened(self.root.parent, os.O_DIRECTORY) as parent:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(self.root.name, 0o700, dir_fd=parent)
                with _opened(self.root, os.O_DIRECTORY, parent) as folder:
                    return use(folder)
        except _NotOurs as problem:
            _warn_once(str(problem))
        except (NotADirectoryError, FileExistsError):
            _warn_once(f"'{self.root}' cannot be a folder, since a file is in its place")
        except OSError:
            pass
        return None

    def _load(self, name: str, read: Callable[[BinaryIO], Entry]) -> Entry | None:
        def load(folder: int) -> Entry | None:
            with _opened(self.root / name, os.O_NONBLOCK, folder) as descriptor:
                try:
                    with open(descriptor, "rb", closefd=False) as file:
                        entry = read(file)
                except ExecutableFormatError:
                    _remove(name, folder)
                    return None
                with contextlib.suppress(OSError):
                    os.utime(descriptor)
                return entry

        return self._in_folder(load)

    def _keep(self, name: str, change: Callable[[str], str]) -> None:
        """Store what a user asks to keep; of entries nobody needs to know whether they could be stored."""

        def keep(folder: int) -> bool:
            fcntl.flock(folder, fcntl.LOCK_EX)  # what two processes add at the same time is kept, all of it
            text = change(self._load(name, _read_text) or "")
            return self._store(name, lambda file: file.write(text.encode()))

        if not self._in_folder(keep, make=True):
            raise self._not_kept(self.root / name)

    def _not_kept(self, path: Path) -> InputError:
        return InputError(
            f"cannot write '{path}'",
            notes=[f"make its folder yours alone, with room, or set {DIRECTORY_VARIABLE} to another one"],
        )

    def _store(self, name: str, write: Callable[[BinaryIO], Any]) -> bool:
        """Whether it could be stored."""

        def store(folder: int) -> bool:
            temporary = f"{_TEMPORARY}{os.urandom(8).hex()}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(temporary, flags, 0o600, dir_fd=folder), "w+b") as file:
                    # Held until the file has its name, and no longer than this process lives.
                    fcntl.flock(file, fcntl.LOCK_EX)
                    write(file)
                    file.flush()
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                _remove(temporary, folder)
                _remove_leftovers(folder)
            self._evict(folder)
            return True

        return self._in_folder(store, make=True) or False

    def _evict(self, folder: int) -> None:
        """Removes the least recently used entries until the rest fits."""
        entries = _entries(folder)
        total = sum(entry.bytes for entry in entries)
        for entry in entries:
            if total <= self.max_bytes:
                break
            _remove(entry.name, folder)
            total -= entry.bytes


def _name(key: str, suffix: str) -> str:
    if not _KEY.fullmatch(key):
        raise OptionError(
            f"'{key}' is not a cache key", notes=["a cache key is a digest of 16 to 128 digits 0-9a-f"]
        )
    return f"{key}.{suffix}"


@contextlib.contextmanager
def _opened(path: Path, flags: int, parent: int | None = None) -> Generator[int]:
    """A descriptor of ``path``, in the folder ``parent`` if given. Raises OSError, or `_NotOurs`."""
    place = path if parent is None else path.name
    if stat.S_ISLNK(os.stat(place, dir_fd=parent, follow_symlinks=False).st_mode):
        raise _NotOurs(f"'{path}' is a symbolic link")
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=parent)
    try:
        if problem := _problem(os.fstat(descriptor), folder=bool(flags & os.O_DIRECTORY)):
            raise _NotOurs(f"'{path}' {problem}")
        yield descriptor
    finally:
        os.close(descriptor)


def _problem(status: os.stat_result, folder: bool = False) -> str | None:
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(status.st_mode):
        return "is not a folder" if folder else "is not a regular file"
    if status.st_uid != os.geteuid():
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


_warned: set[str] = set()


def _warn_once(problem: str) -> None:
    if problem not in _warned:
        _warned.add(problem)
        advice = f"make it yours alone (chmod go-w), remove it, or set {DIRECTORY_VARIABLE} to another folder"
        warnings.warn(DevscopeWarning(f"the cache is not used: {problem}; {advice}"), stacklevel=2)


def _entries(folder: int) -> list[CacheEntry]:
    found = [entry for entry in _own_files(folder) if _ENTRY.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: entry.used)


def _own_files(folder: int) -> Iterator[CacheEntry]:
    """The files of a folder that are the user's alone."""
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if _problem(status) is None:
                yield CacheEntry(name, status.st_mtime, status.st_size)


def _remove_leftovers(folder: int) -> None:
    """Removes the temporary files whose writers hold no lock on them any more: they died."""
    for entry in _own_files(folder):
        if entry.name.startswith(_TEMPORARY):
            with contextlib.suppress(OSError):
                descriptor = os.open(entry.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.name, dir_fd=folder)
                finally:
                    os.close(descriptor)


def _read_blob(file: BinaryIO) -> bytes:
    data = file.read()
    head = len(_BLOB_MAGIC) + hashlib.sha256().digest_size
    blob = data[head:]
    if data[:head] != _BLOB_MAGIC + hashlib.sha256(blob).digest():
        raise ExecutableFormatError("an entry of the cache is damaged")
    return blob


def _schedules_name() -> str:
    return f"schedules-{hashlib.sha256(_processor().encode()).hexdigest()[:16]}.toml"


def _machine_name() -> str:
    return f"machine-{hashlib.sha256(_processor().encode()).hexdigest()[:16]}.toml"


def _read_text(file: BinaryIO) -> str:
    try:
        return file.read().decode()
    except UnicodeDecodeError:
        raise ExecutableFormatError("a text in the cache is damaged") from None


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
