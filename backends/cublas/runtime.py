"""Where cuBLASLt is: what ``DEVSCOPE_CUBLASLT`` names, else the newest of the machine or of a package."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from devscope.runtime.plugins import LibraryRuntime, package_files

_VERSIONS = (13, 12, 11)
_PACKAGES = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12", "nvidia-cublas-cu11")


class CublasRuntime(LibraryRuntime):
    name = "cublas"
    advice = "install CUDA's cuBLAS, or set DEVSCOPE_CUBLASLT to the path of libcublasLt.so"

    def open(self) -> ctypes.CDLL:
        if path := os.environ.get("DEVSCOPE_CUBLASLT"):
            return ctypes.CDLL(path)
        for path in _candidates():
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
        raise OSError("there is no libcublasLt.so")


def _candidates() -> Iterator[str]:
    yield from (f"libcublasLt.so.{version}" for version in _VERSIONS)
    yield from map(str, package_files(_PACKAGES, "libcublasLt.so"))
    roots = {os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"} - {None, ""}
    for root in sorted(str(one) for one in roots):
        yield from (str(path) for path in sorted(Path(root, "lib64").glob("libcublasLt.so.*"), reverse=True))
