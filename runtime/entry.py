"""Calls one public function of a program through MLIR's C interface.

Arguments and results are memref descriptors, cells of 8 bytes: allocated pointer, aligned pointer, offset,
sizes, strides (in elements). The function takes a pointer to its results' descriptors, one after the other
(left out when there are none), then a pointer to the descriptor of each argument. It is called through a
function that takes these pointers as an array, see :func:`.native.call_symbol`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.arguments import Array
from devscope.runtime.device_error import negative_size
from devscope.runtime.linker import HostLibrary
from devscope.runtime.native.abi import Block
from devscope.runtime.program import Entry
from devscope.runtime.results import HostMemory, ResultMaker

_HEADER = 3  # allocated, aligned, offset
_CELL = 8


class EntryCaller:
    """One entry with its descriptors; they are reused, so only one call may run at a time."""

    def __init__(self, name: str, entry: Entry, library: HostLibrary) -> None:
        self.name = name
        self._makers = [ResultMaker(spec) for spec in entry.outputs]
        self._result_at, results_end = _offsets([maker.rank for maker in self._makers], 0)
        self._argument_at, end = _offsets([len(spec.shape) for spec in entry.inputs], results_end)
        self._is_static = [None not in spec.shape for spec in entry.inputs]
        self._cells = (ctypes.c_int64 * max(end, 1))()
        for spec, at in zip(entry.inputs, self._argument_at, strict=True):
            if None not in spec.shape:
                self._write_sizes(at, [size for size in spec.shape if size is not None])
        base = ctypes.addressof(self._cells)
        starts = ([0] if self._makers else []) + self._argument_at
        self._pointers = (ctypes.c_void_p * max(len(starts), 1))(*[base + start * _CELL for start in starts])
        self._pointers_at = ctypes.addressof(self._pointers)
        self._call = library.call
        self._address = library[entry.symbol]
        # Memory that an entry returns was allocated this many bytes before its allocated pointer.
        self._header = ctypes.sizeof(Block)

    def call(self, context: int, arrays: Sequence[Array]) -> bool:
        """Runs the function in a native context; other Python threads run meanwhile.

        Its results stay in the descriptors. False when it failed: there are none, and the context has the error.
        """
        cells = self._cells
        for is_static, at, array in zip(self._is_static, self._argument_at, arrays, strict=True):
            cells[at] = cells[at + 1] = array.__array_interface__["data"][0]
            if not is_static:
                self._write_sizes(at, array.shape)
        return self._call(context, self._address, self._pointers_at) == 0

    def take_results(self, give_back: Callable[[int], None]) -> list[Any]:
        """The results of the last call, now the caller's; ``give_back`` gets their blocks in the end.

        Memory that belongs to an argument or that was returned twice must not be freed twice, whatever the
        compiled code says about ownership. Raises :class:`DeviceError` for a shape that no array can have.
        """
        if not self._makers:
            return []
        cells = self._cells
        given = {cells[at] for at in self._argument_at}
        # All of them first: if a result cannot be made, the others must be freed nevertheless.
        owners = {
            allocated: HostMemory(0 if allocated in given else allocated - self._header, give_back)
            for allocated in {cells[at] for at in self._result_at}
        }
        results: list[Any] = []
        for position, (maker, at) in enumerate(zip(self._makers, self._result_at, strict=True)):
            allocated, aligned, offset = cells[at : at + _HEADER]
            sizes = cells[at + _HEADER : at + _HEADER + maker.rank]
            strides = cells[at + _HEADER + maker.rank : at + _HEADER + 2 * maker.rank]
            if sizes and min(sizes) < 0:
                raise negative_size(f"result {position} of '{self.name}'", min(sizes))
            try:
                array = maker(owners[allocated], aligned + offset * maker.dtype.itemsize, sizes, strides)
            except ValueError as error:
                raise DeviceError(
                    f"result {position} of '{self.name}', of shape {sizes}, cannot be an array: {error}"
                ) from None
            results.append(array.copy() if allocated in given else array)
        return results

    def _write_sizes(self, at: int, sizes: Sequence[int]) -> None:
        """Sizes and strides of a contiguous array into the descriptor that starts at cell ``at``."""
        rank = len(sizes)
        stride = 1
        for index in range(rank - 1, -1, -1):
            self._cells[at + _HEADER + index] = sizes[index]
            self._cells[at + _HEADER + rank + index] = stride
            stride *= sizes[index]


def _offsets(ranks: Sequence[int], start: int) -> tuple[list[int], int]:
    """Where descriptors of these ranks start, one after the other, and where the last one ends (in cells)."""
    offsets: list[int] = []
    for rank in ranks:
        offsets.append(start)
        start += _HEADER + 2 * rank
    return offsets, start
