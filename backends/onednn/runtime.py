"""Where oneDNN is: a library that ``DEVSCOPE_ONEDNN`` names, else the newest that is installed and has an engine
for CPUs, PyPI's ``onednn-cpu-gomp`` or the machine's own."""

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

from devscope.runtime.plugins import LibraryRuntime, package_files

_PACKAGES = ("onednn-cpu-gomp", "onednn-cpu-iomp", "onednn")
_FILE = re.compile(r"libdnnl\.so(?:\.(\d+))+")
_CPU, _MAJOR = 1, 3
_HARD_PAUSE = 2


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class OnednnRuntime(LibraryRuntime):
    name = "onednn"
    advice = "pip install 'devscope[onednn]'"
    environment = ("GOMP_SPINCOUNT=3000",)
    """Idle threads wait for some microseconds, then sleep: by default for a millisecond, see `BlasRuntime`."""

    def open(self) -> ctypes.CDLL:
        if path := os.environ.get("DEVSCOPE_ONEDNN"):
            return _opened(path)
        problems: list[str] = []
        for path in _installed():
            try:
                return _opened(path)
            except OSError as error:
                problems.append(str(error))
        raise OSError("; ".join(problems) or "oneDNN is not installed")


def _installed() -> list[str]:
    """The libraries that there are, the newest first."""
    found = {path.resolve() for path in _files() if _FILE.fullmatch(path.resolve().name)}
    numbers = {path: [int(part) for part in path.name.split(".")[2:]] for path in found}
    names = [str(path) for path in sorted(found, key=lambda path: numbers[path], reverse=True)]
    system = find_library("dnnl")
    return [*names, system] if system is not None else names


def _files() -> Iterator[Path]:
    yield from package_files(_PACKAGES, "libdnnl.so")
    for folder in {sys.prefix, sys.base_prefix, "/usr", "/usr/local"}:
        yield from Path(folder, "lib").glob("libdnnl.so*")
        yield from Path(folder, "lib").glob("*-linux-gnu/libdnnl.so*")


def _opened(path: str) -> ctypes.CDLL:
    """The library. Raises OSError if it cannot be opened, has no engine for CPUs, or other functions."""
    library = ctypes.CDLL(path)
    try:
        library.dnnl_version.restype = ctypes.POINTER(_Version)
        library.dnnl_engine_get_count.restype = ctypes.c_size_t
        major, engines = library.dnnl_version().contents.major, library.dnnl_engine_get_count(_CPU)
    except AttributeError:
        raise OSError(f"{path} is not oneDNN") from None
    if major != _MAJOR:
        raise OSError(f"{path} is oneDNN {major}, not {_MAJOR}")
    if not engines:
        raise OSError(f"{path} has no engine for CPUs")
    if not hasattr(library, "omp_set_num_threads"):
        raise OSError(f"{path} was not built with OpenMP")
    if hasattr(library, "omp_pause_resource_all"):
        # OpenMP's threads do not survive a fork; it would wait for them.
        os.register_at_fork(before=lambda: library.omp_pause_resource_all(_HARD_PAUSE))
    return library
