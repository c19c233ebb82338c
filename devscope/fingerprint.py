"""What identifies the compiler itself in cache keys."""

import hashlib
import importlib.util
import os
from collections.abc import Iterable
from functools import cache
from typing import Any

_PACKAGES = tuple(
    f"devscope{name}"
    for name in (
        "",
        ".analysis",
        ".backends",
        ".dialects",
        ".frontends",  # models whose import takes time are found by what they are, not by what is made of them
        ".lowering",
        ".passes",
        ".rewriting",
        ".runtime",
    )
)
# What decides on a program: the runtime itself is linked when one is loaded, but for its layout.
_SUFFIXES = (".py", ".mlir", ".pipeline", ".toml", ".h")
_DEPENDENCIES = ("llvmlite", "mlir", "scipy", "torch_mlir", "xdsl")


@cache
def compiler_fingerprint() -> str:
    """Digest of devscope's files and of the compiler packages beneath it.

    Files are identified by name, size and modification time, so that an edited checkout never gets programs
    that an older state of it compiled. Nothing is imported: this runs before every cached start.
    """
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for folder in _folders(package):
            _add_files(digest, _files(folder, _SUFFIXES))
    for package in _DEPENDENCIES:
        for folder in _folders(package):
            status = os.stat(folder)  # pip makes the folder anew for every version
            digest.update(f"{folder}:{status.st_mtime_ns}\n".encode())
    digest.update(os.environ.get("DEVSCOPE_MLIR", "").encode())
    return digest.hexdigest()


def package_of(module: str) -> str:
    """The outermost package of a module."""
    return module.partition(".")[0]


def package_fingerprint(module: str) -> str:
    """Digest of all files of the package that a module belongs to; of its own file if that is no package."""
    package, digest = package_of(module), hashlib.sha256()
    for folder in _folders(package):
        _add_files(digest, _files(folder))
    own = importlib.util.find_spec(package)
    if own is not None and own.origin is not None and not own.submodule_search_locations:
        _add_files(digest, [own.origin])
    return digest.hexdigest()


def _add_files(digest: Any, paths: Iterable[str]) -> None:
    for path in paths:
        status = os.stat(path)
        digest.update(f"{path}:{status.st_size}:{status.st_mtime_ns}\n".encode())


def _folders(package: str) -> list[str]:
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    locations = found.submodule_search_locations if found is not None else None
    return sorted(path for path in locations or () if os.path.isdir(path))


def _files(folder: str, suffixes: str | tuple[str, ...] = "") -> list[str]:
    """The files in a folder, at any depth, but for what Python makes of them."""
    found: list[str] = []
    for path, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += (os.path.join(path, name) for name in names if name.endswith(suffixes))
    return sorted(found)
