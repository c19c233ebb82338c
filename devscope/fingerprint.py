"""What identifies the compiler itself in cache keys."""

import hashlib
import importlib.util
import os
from functools import cache

_PACKAGES = tuple(
    f"devscope{name}" for name in ("", ".analysis", ".dialects", ".lowering", ".passes", ".rewriting", ".runtime")
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
            for path in _files(folder):
                status = os.stat(path)
                digest.update(f"{path}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    for package in _DEPENDENCIES:
        for folder in _folders(package):
            status = os.stat(folder)  # pip makes the folder anew for every version
            digest.update(f"{folder}:{status.st_mtime_ns}\n".encode())
    digest.update(os.environ.get("DEVSCOPE_MLIR", "").encode())
    return digest.hexdigest()


def _folders(package: str) -> list[str]:
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    locations = found.submodule_search_locations if found is not None else None
    return sorted(path for path in locations or () if os.path.isdir(path))


def _files(folder: str) -> list[str]:
    walk = os.walk(folder, followlinks=True)
    return sorted(os.path.join(path, n) for path, _, names in walk for n in names if n.endswith(_SUFFIXES))
