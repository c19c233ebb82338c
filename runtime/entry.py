"""Calls one public function of a program through MLIR's C interface.

Arguments and results are memref descriptors, cells of 8 bytes: allocated pointer, aligned pointer, offset,
sizes, strides (in elements). The function takes a pointer to its results' descriptors, one after the other
(left out when there are none), then a pointer to the descriptor of each argument. It is called through a
function that takes these pointers as an array, see :func:`.native.call_symbol`.

Results are arrays over memory of the program, which goes back to it with the last array. numpy has no bfloat16:
``bf16`` results are ``ml_dtypes.bfloat16`` where that package is installed, else uint16.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from devscope.errors import DeviceError, InputError
from devscope.runtime.arguments import Array
from devscope.runtime.device_error import negative_size
from devscope.runtime.linker import HostLibrary
from devscope.runtime.native.abi import RETURNED_BLOCKS, Block, Out
from devscope.runtime.program import DTYPES, Entry, TensorSpec

_HEADER = 3  # allocated, aligned, offset
_CELL = 8

_free: Any = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


class EntryCaller:
    """One entry with its descriptors; they are reused, so only one call may run at a time."""

    def __init__(self, name: str, entry: Entry, library: HostLibrary) -> None:
        self.name = name
        self._outputs = entry.outputs
        self._outs = (Out * max(len(entry.outputs), 1))()
        self._result_at, results_end = _offsets(entry.outputs, 0)
        self._argument_at, end = _offsets(entry.inputs, results_end)
        self._is_static = [None not in spec.shape for spec in entry.inputs]
        self._cells = (ctypes.c_int64 * max(end, 1))()
        for spec, at in zip(entry.inputs, self._argument_at, strict=True):
            if None not in spec.shape:
                self._write_sizes(at, [size for size in spec.shape if size is not None])
        base = ctypes.addressof(self._cells)
        starts = ([0] if entry.outputs else []) + self._argument_at
        self._pointers = (ctypes.c_void_p * max(len(starts), 1))(*[base + start * _CELL for start in starts])
        self._pointers_at = ctypes.addressof(self._pointers)
        self._call = library.call
        self._address = library[entry.symbol]
        # Memory that an entry returns was allocated this many bytes before its allocated pointer.
        self._header = ctypes.sizeof(Block)

    def call(self, context: Any, arrays: Sequence[Array], outs: Sequence[Array | None] = ()) -> bool:
        """Runs the function in a native context; other Python threads run meanwhile.

        Its results stay in the descriptors, or go to the memory of ``outs``, which may be that of arguments. False
        when it failed: there are none, and the context has the error.
        """
        context.out_count = len(outs)
        if outs:
            self._offer(context, arrays, outs)
        cells = self._cells
        for is_static, at, array in zip(self._is_static, self._argument_at, arrays, strict=True):
            cells[at] = cells[at + 1] = array.__array_interface__["data"][0]
            if not is_static:
                self._write_sizes(at, array.shape)
        return self._call(ctypes.addressof(context), self._address, self._pointers_at) == 0

    def _offer(self, context: Any, arrays: Sequence[Array], outs: Sequence[Array | None]) -> None:
        """Memory that is no argument's is written by the function itself."""
        context.outs = ctypes.addressof(self._outs)
        for place, out in zip(self._outs, outs, strict=True):
            is_free = out is not None and not any(np.may_share_memory(out, array) for array in arrays)
            place.memory, place.bytes = (out.ctypes.data, out.nbytes) if out is not None and is_free else (0, 0)

    def take_results(self, give_back: Callable[[int], None], outs: Sequence[Array | None] = ()) -> list[Any]:
        """The results of the last call, now the caller's; ``give_back`` gets their blocks in the end.

        Those that ``outs`` has an array for are there, and are that array; :class:`InputError` if its shape is not
        the result's. Memory that belongs to an argument or that was returned twice must not be freed twice,
        whatever the compiled code says about ownership. Raises :class:`DeviceError` for a shape that no array can
        have.
        """
        cells = self._cells
        given = {cells[at] for at in self._argument_at}
        kept = given | ({place.memory for place in self._outs} if outs else set[int]())
        # All of them first: if a result cannot be made, the others must be freed nevertheless.
        owners = {
            allocated: HostMemory(0 if allocated in kept else allocated - self._header, give_back)
            for allocated in {cells[at] for at in self._result_at}
        }
        results: list[Any] = []
        for position, (spec, at) in enumerate(zip(self._outputs, self._result_at, strict=True)):
            rank = len(spec.shape)
            allocated, aligned, offset = cells[at : at + _HEADER]
            sizes = cells[at + _HEADER : at + _HEADER + rank]
            strides = cells[at + _HEADER + rank : at + _HEADER + 2 * rank]
            if sizes and min(sizes) < 0:
                raise negative_size(f"result {position} of '{self.name}'", min(sizes))
            try:
                address = aligned + offset * DTYPES[spec.dtype].itemsize
                array = result_array(spec, owners[allocated], address, sizes, strides)
            except ValueError as error:
                raise DeviceError(
                    f"result {position} of '{self.name}', of shape {sizes}, cannot be an array: {error}"
                ) from None
            results.append(array.copy() if allocated in given else array)
        for position, out in enumerate(outs):
            if out is not None:
                results[position] = self._put(position, results[position], out)
        return results

    def _put(self, position: int, array: Array, out: Array) -> Array:
        if array.shape != out.shape:
            raise InputError(
                f"result {position} of '{self.name}' has shape {list(array.shape)}, the array for it "
                f"{list(out.shape)}",
                notes=["what that array contains now is not defined"],
            )
        if array.size and array.ctypes.data != out.ctypes.data:
            np.copyto(out, array.view(out.dtype))
        return out

    def _write_sizes(self, at: int, sizes: Sequence[int]) -> None:
        """Sizes and strides of a contiguous array into the descriptor that starts at cell ``at``."""
        rank = len(sizes)
        stride = 1
        for index in range(rank - 1, -1, -1):
            self._cells[at + _HEADER + index] = sizes[index]
            self._cells[at + _HEADER + rank + index] = stride
            stride *= sizes[index]


def _offsets(specs: Sequence[TensorSpec], start: int) -> tuple[list[int], int]:
    """Where descriptors start, one after the other, and where the last one ends (in cells)."""
    offsets: list[int] = []
    for spec in specs:
        offsets.append(start)
        start += _HEADER + 2 * len(spec.shape)
    return offsets, start


def result_array(spec: TensorSpec, owner: HostMemory, address: int, sizes: list[int], strides: list[int]) -> Any:
    """An array over the memory of ``owner``; a numpy scalar for a scalar result.

    ``address`` is that of element 0, ``strides`` count elements.
    """
    dtype = DTYPES[spec.dtype]
    if 0 in sizes:
        array = np.empty(sizes, dtype)
    else:
        owner.__array_interface__ = {
            "data": (address, False),
            "shape": tuple(sizes),
            "strides": tuple(stride * dtype.itemsize for stride in strides),
            "typestr": dtype.str,
            "version": 3,
        }
        array = np.asarray(owner)
    if spec.dtype == "bf16" and (bfloat16 := _bfloat16()) is not None:
        array = array.view(bfloat16)
    return array[()] if spec.scalar else array


@cache
def _bfloat16() -> np.dtype[Any] | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


class HostMemory:
    """A block of a result; given back with this object, which every array over the memory keeps alive."""

    # The finalizer of each is what stands in the slot, and no Python code: the interpreter would look for signals
    # first, and what their handlers raise, such as KeyboardInterrupt, would be lost in a finalizer.
    __slots__ = ("__array_interface__", "__del__")

    def __init__(self, block: int, give: Callable[[int], None]) -> None:
        self.__array_interface__: dict[str, Any] = {}
        self.__del__ = partial(give, block) if block else int


class ReturnedMemory:
    """Blocks of results whose arrays are gone; the next call of the program uses them again.

    Arrays go away in any thread and at any time, also while a call runs and after the executable was closed: the
    list is only touched by single operations, which the interpreter does not interrupt. What is more than the next
    call can use is freed by that, or with the executable and the last of its results.
    """

    def __init__(self) -> None:
        self._blocks = _Blocks()
        self.give: Callable[[int], None] = self._blocks.append
        """Takes a block over."""

    def hand_over(self, context: Any) -> None:
        """Puts what there is where the next call looks for it."""
        while self._blocks and context.returned_count < RETURNED_BLOCKS:
            try:
                context.returned[context.returned_count] = self._blocks.pop()
            except IndexError:  # another thread was faster
                return
            context.returned_count += 1
        if len(self._blocks) > RETURNED_BLOCKS:
            self._blocks.free(RETURNED_BLOCKS)

    def close(self) -> None:
        """Frees what there is."""
        self._blocks.free(0)


class _Blocks(list[int]):
    """Blocks that are freed with the list: arrays have it, too."""

    # Bound as a default: at interpreter exit the module's names are gone before the last arrays.
    def free(self, most: int, free: Any = _free) -> None:
        """Frees some, so that no more than ``most`` are left."""
        while len(self) > most:
            try:
                free(self.pop())
            except IndexError:  # another thread was faster
                return

    def __del__(self) -> None:
        self.free(0)
