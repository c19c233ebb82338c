"""Calls one public function of a program through MLIR's C interface.

Arguments and results are memref descriptors, cells of 8 bytes: allocated pointer, aligned pointer, offset,
sizes, strides (in elements). The function takes a pointer to its results' descriptors, one after the other
(left out when there are none), then a pointer to the descriptor of each argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from devscope.errors import InputError
from devscope.runtime.arrays import ArgumentCheck, Array, HostMemory, ResultMaker
from devscope.runtime.program import Entry

_HEADER = 3  # allocated, aligned, offset
_CELL = 8


class EntryCaller:
    """One entry with its descriptors; they are reused, so only one call may run at a time."""

    def __init__(self, name: str, entry: Entry, address: int) -> None:
        self.name = name
        self.entry = entry
        self._checks = [ArgumentCheck(spec, position) for position, spec in enumerate(entry.inputs)]
        self._makers = [ResultMaker(spec) for spec in entry.outputs]
        self._result_at, results_end = _offsets([maker.rank for maker in self._makers], 0)
        self._argument_at, end = _offsets([len(check.shape) for check in self._checks], results_end)
        self._result_cells = results_end
        self._cells = (ctypes.c_int64 * max(end, 1))()
        for check, at in zip(self._checks, self._argument_at, strict=True):
            if check.is_static:
                self._write_sizes(at, [size for size in check.shape if size is not None])
        base = ctypes.addressof(self._cells)
        starts = ([0] if self._makers else []) + self._argument_at
        self._pointers = [base + start * _CELL for start in starts]
        self._function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(starts))(address)

    def check(self, values: Sequence[Any]) -> list[Array]:
        """The arguments of a call as arrays. Raises :class:`InputError`."""
        if len(values) != len(self._checks):
            specs = ", ".join(f"{spec.name}: {spec}" if spec.name else str(spec) for spec in self.entry.inputs)
            raise InputError(
                f"'{self.name}' takes {len(self._checks)} arguments, got {len(values)}",
                notes=[f"its arguments are: ({specs})"],
            )
        return [check(value) for check, value in zip(self._checks, values, strict=True)]

    def call(self, arrays: Sequence[Array]) -> None:
        """Runs the function; other Python threads run meanwhile. Its results stay in the descriptors."""
        cells = self._cells
        for check, at, array in zip(self._checks, self._argument_at, arrays, strict=True):
            cells[at] = cells[at + 1] = array.__array_interface__["data"][0]
            if not check.is_static:
                self._write_sizes(at, array.shape)
        if self._result_cells:
            ctypes.memset(cells, 0, self._result_cells * _CELL)
        self._function(*self._pointers)

    def take_results(self) -> list[Any]:
        """The results of the last call, which now belong to the caller.

        Memory that belongs to an argument or that was returned twice must not be freed twice, whatever the
        compiled code says about ownership.
        """
        owners: dict[int, HostMemory] = {}
        results: list[Any] = []
        given = {self._cells[at] for at in self._argument_at}
        for maker, at in zip(self._makers, self._result_at, strict=True):
            allocated, aligned, offset = self._cells[at : at + _HEADER]
            sizes = self._cells[at + _HEADER : at + _HEADER + maker.rank]
            strides = self._cells[at + _HEADER + maker.rank : at + _HEADER + 2 * maker.rank]
            borrowed = allocated in given
            if borrowed or allocated not in owners:
                owners[allocated] = HostMemory(0 if borrowed else allocated)
            array = maker(owners[allocated], aligned + offset * maker.dtype.itemsize, sizes, strides)
            results.append(array.copy() if borrowed else array)
        return results

    def drop_results(self) -> None:
        """Frees the results of a call that failed; some may be missing."""
        given = {self._cells[at] for at in self._argument_at}
        for allocated in {self._cells[at] for at in self._result_at} - given - {0}:
            HostMemory(allocated)

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
