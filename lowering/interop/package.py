"""Which package carries MLIR's Python bindings.

The only module that knows its name. The official ``mlir`` package is preferred where it is installed;
``torch_mlir``, a build of the same bindings, is what pip installs. ``DEVSCOPE_MLIR=mlir|torch_mlir`` decides.
"""

import ctypes
import importlib.util
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import Thread

from devscope.errors import InputError

_PACKAGES = ("mlir", "torch_mlir")
_VARIABLE = "DEVSCOPE_MLIR"


def select_package() -> str:
    """The name of the package that carries the bindings.

    Raises `InputError` when ``DEVSCOPE_MLIR`` names anything else, or when no package with bindings is installed.
    """
    wish = os.environ.get(_VARIABLE, "")
    if wish and wish not in _PACKAGES:
        raise InputError(f"{_VARIABLE} names '{wish}'", notes=[f"legal values are: {', '.join(_PACKAGES)}"])
    candidates = (wish,) if wish else _PACKAGES
    for package in candidates:
        if _has_bindings(package):
            return package
    raise InputError(
        f"no MLIR Python bindings are installed (looked for: {', '.join(candidates)})",
        notes=["install them with: pip install torch-mlir"],
    )


def _has_bindings(package: str) -> bool:
    """Whether ``package`` has an ``ir`` module; a package of that name without one is a placeholder."""
    try:
        return importlib.util.find_spec(f"{package}.ir") is not None
    except ImportError:
        return False


def load_libraries_ahead() -> None:
    """Let a thread load the shared libraries of MLIR and LLVM while the compiler's Python modules are imported.

    To map and relocate them takes a tenth of the time to the first result of a small program, and needs no
    interpreter. What is not found here, or cannot be loaded, is an error where it is imported.
    """
    folders = (
        (f"{select_package()}._mlir_libs", f"_mlir{EXTENSION_SUFFIXES[0]}"),
        ("llvmlite.binding", "libllvmlite.so"),
    )
    paths = [_folder(package) / name for package, name in folders if package not in sys.modules]
    if paths:
        try:
            Thread(target=_open, args=(paths,)).start()
        except RuntimeError:  # there can be no more threads
            return


def _folder(package: str) -> Path:
    parent, _, name = package.rpartition(".")
    found = importlib.util.find_spec(parent)
    places = found.submodule_search_locations if found is not None else None
    return Path(*(places or ["."])[:1], name)


def _open(paths: list[Path]) -> None:
    """Not by ``ctypes.CDLL``, which keeps the interpreter's lock."""
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    for path in paths:
        dlopen(os.fsencode(path), os.RTLD_NOW | os.RTLD_LOCAL)
