"""Where OpenBLAS is: PyPI's ``scipy-openblas32``, or a library that ``DEVSCOPE_OPENBLAS`` names."""

import ctypes
import os
from pathlib import Path

from devscope.runtime.plugins import LibraryRuntime


class BlasRuntime(LibraryRuntime):
    name = "blas"
    advice = "pip install 'devscope[blas]'"
    environment = ("OPENBLAS_THREAD_TIMEOUT=14",)
    """Idle threads wait for 2^14 ticks, then sleep; by default for 2^26, in which other threads lack the cores."""

    def open(self) -> ctypes.CDLL:
        if path := os.environ.get("DEVSCOPE_OPENBLAS"):
            return ctypes.CDLL(path)
        try:
            import scipy_openblas32  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise OSError("OpenBLAS is not installed") from None
        folder = Path(scipy_openblas32.get_lib_dir())
        return ctypes.CDLL(str(folder / scipy_openblas32.get_library(fullname=True)))

    def use_threads(self, count: int) -> None:
        """Its threads are the process's, as those of devscope's pool: a later program's number counts for all."""
        self.opened.scipy_openblas_set_num_threads(ctypes.c_int(count))
