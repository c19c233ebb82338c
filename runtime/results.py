"""Results of calls: arrays over memory of the program, and that memory on its way back.

numpy has no bfloat16: ``bf16`` results are ``ml_dtypes.bfloat16`` where that package is installed, else uint16.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from devscope.runtime.native.abi import RETURNED_BLOCKS
from devscope.runtime.program import DTYPES, TensorSpec

_free: Any = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


class ResultMaker:
    """Turns one returned memref into an array that owns the memory."""

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec
        self.dtype = DTYPES[spec.dtype]
        self.rank = len(spec.shape)

    def __call__(self, owner: HostMemory, address: int, sizes: list[int], strides: list[int]) -> Any:
        """An array over the memory of ``owner``; a numpy scalar for a scalar result.

        ``address`` is that of element 0, ``strides`` count elements.
        """
        item = self.dtype.itemsize
        if 0 in sizes:
            array = np.empty(sizes, self.dtype)
        else:
            owner.__array_interface__ = {
                "data": (address, False),
                "shape": tuple(sizes),
                "strides": tuple(stride * item for stride in strides),
                "typestr": self.dtype.str,
                "version": 3,
            }
            array = np.asarray(owner)
        if self.spec.dtype == "bf16" and (bfloat16 := _bfloat16()) is not None:
            array = array.view(bfloat16)
        return array[()] if self.spec.scalar else array


@cache
def _bfloat16() -> np.dtype[Any] | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


class HostMemory:
    """A block of a result; given back with this object, which every array over the memory keeps alive."""

    __slots__ = ("__array_interface__", "_block", "_give")

    def __init__(self, block: int, give: Callable[[int], None]) -> None:
        self._block = block
        self._give = give
        self.__array_interface__: dict[str, Any] = {}

    def __del__(self) -> None:
        if self._block:
            self._give(self._block)


class ReturnedMemory:
    """Blocks of results whose arrays are gone; the next call of the program uses them again.

    Arrays go away in any thread and at any time, also while a call runs and after the executable was closed: the
    list is only touched by single operations, which the interpreter does not interrupt.
    """

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._most = RETURNED_BLOCKS

    def give(self, block: int) -> None:
        """Takes a block over."""
        self._blocks.append(block)
        self._trim()

    def hand_over(self, context: Any) -> None:
        """Puts what there is where the next call looks for it."""
        while self._blocks and context.returned_count < RETURNED_BLOCKS:
            try:
                context.returned[context.returned_count] = self._blocks.pop()
            except IndexError:  # another thread was faster
                return
            context.returned_count += 1

    def close(self) -> None:
        """Frees what there is, and from now on what comes."""
        self._most = 0
        self._trim()

    # Bound as a default: at interpreter exit the module's names are gone before the last arrays.
    def _trim(self, free: Any = _free) -> None:
        while len(self._blocks) > self._most:
            try:
                free(self._blocks.pop())
            except IndexError:  # another thread was faster
                return
