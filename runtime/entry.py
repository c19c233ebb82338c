"""Calls one public function of a program through MLIR's C interface.

Arguments and results are memref descriptors, cells of 8 bytes: allocated pointer, aligned pointer, offset,
sizes, strides (in elements). The function takes a pointer to its results' descriptors, one after the other
(left out when there are none), then a pointer to the descriptor of each argument. It is called through a
function that takes these pointers as an array, see :func:`.native.call_symbol`.

``native/python.c`` makes descriptors of arrays, and arrays of descriptors, over memory of the program, which goes
back to it with the last array. Results of dtypes that numpy lacks, such as ``bf16``, are of ``ml_dtypes`` where
that package is installed, else their bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from devscope.errors import DeviceError, DevscopeError, InputError
from devscope.runtime.device_error import negative_size
from devscope.runtime.dtypes import ENTRY_DTYPES, array_dtype
from devscope.runtime.interpreter import method
from devscope.runtime.linker import HostLibrary, shared_runtime
from devscope.runtime.native import abi
from devscope.runtime.program import Entry, TensorSpec

_HEADER = 3  # allocated, aligned, offset

ARGUMENTS, WITH_OUT, CHECKED = range(3)
"""How an entry is called: with its arguments; with an array or None for each result behind them; or with the same,
after Python has checked and converted them."""

_METHODS = ("devscope_python_call", "devscope_python_call_out", "devscope_python_call_checked")


class EntryCaller:
    """One entry with its descriptors; they are reused, so only one call may run at a time."""

    def __init__(self, name: str, entry: Entry, library: HostLibrary, context: int) -> None:
        self.name = name
        self._keep: list[Any] = []
        self._sizes, cells = self._descriptors([*entry.outputs, *entry.inputs])
        results, arguments = cells[: len(entry.outputs)], cells[len(entry.outputs) :]
        self._record = abi.PythonEntry(
            context=context,
            call=library.call,
            entry=library[entry.symbol],
            pointers=self._array(ctypes.c_int64, [*results[:1], *arguments]),
            argument_count=len(arguments),
            arguments=self._values(entry.inputs, (_bits, array_dtype), arguments),
            result_count=len(results),
            results=self._values(entry.outputs, (array_dtype, _bits), results),
            outs=self._array(abi.Out, [abi.Out() for _ in results]),
        )
        record = ctypes.addressof(self._record)
        functions = shared_runtime()
        self.calls: list[Callable[..., tuple[Any, ...] | None]] = [
            method(functions[symbol], record) for symbol in _METHODS
        ]
        """Called in one of the ways :data:`ARGUMENTS`, :data:`WITH_OUT`, :data:`CHECKED`: the results.

        None where there is a problem; NotImplemented for anything but numbers, and numpy's arrays, of the right
        dtypes and shapes, contiguous and aligned: those that are checked are taken as they are. ValueError for
        results that cannot be arrays. Other Python threads run meanwhile."""

    def problem(self, values: Sequence[Any], error: ValueError | None = None) -> DevscopeError | None:
        """What to raise where a call with ``values`` cannot give its results, maybe for an ``error`` of numpy's.

        None if that is not why: the context has the error of the call, or ``error`` is one of others.
        """
        position = self._record.position
        result = f"result {position} of '{self.name}'"
        if self._record.problem == abi.Problem.OUT_SHAPE:
            out = values[self._record.argument_count + position]
            return InputError(
                f"{result} has shape {list(self._sizes[position])}, the array for it {list(out.shape)}",
                notes=["what that array contains now is not defined"],
            )
        if self._record.problem != abi.Problem.NO_ARRAY:
            return None
        sizes = list(self._sizes[position])
        if min(sizes, default=0) < 0:
            return negative_size(result, min(sizes))
        return DeviceError(f"{result}, of shape {sizes}, cannot be an array: {error}")

    def _descriptors(self, specs: Sequence[TensorSpec]) -> tuple[list[Any], list[int]]:
        """Descriptors, one after the other: their sizes, and their addresses."""
        lengths = [_HEADER + 2 * len(spec.shape) for spec in specs]
        base = self._array(ctypes.c_int64, [0] * sum(lengths))
        addresses = [base + sum(lengths[:number]) * 8 for number in range(len(specs))]
        sizes = [
            (ctypes.c_int64 * len(spec.shape)).from_address(address + _HEADER * 8)
            for spec, address in zip(specs, addresses, strict=True)
        ]
        return sizes, addresses

    def _values(
        self, specs: Sequence[TensorSpec], kinds: Sequence[Callable[[str], Any]], descriptors: Sequence[int]
    ) -> int:
        """``kinds``: what gives the dtype of a type's arrays, and another one that they may have."""
        dtypes, others = ([kind(spec.dtype) for spec in specs] for kind in kinds)
        self._keep += [dtypes, others]
        return self._array(
            abi.Value,
            [
                abi.Value(
                    dtype=id(dtype),
                    rank=len(spec.shape),
                    item_bytes=dtype.itemsize,
                    is_scalar=spec.scalar,
                    shape=self._array(ctypes.c_int64, [-1 if size is None else size for size in spec.shape]),
                    descriptor=descriptor,
                    strides=self._array(ctypes.c_int64, [0] * len(spec.shape)),
                    kind=ord(dtype.kind),
                    number_type=id(dtype.type),
                    other_dtype=id(other),
                )
                for spec, dtype, other, descriptor in zip(specs, dtypes, others, descriptors, strict=True)
            ],
        )

    def _array(self, element: Any, items: Sequence[Any]) -> int:
        """Address of an array that lives as long as this object."""
        array = (element * max(len(items), 1))(*items)
        self._keep.append(array)
        return ctypes.addressof(array)


def _bits(dtype: str) -> Any:
    return ENTRY_DTYPES[dtype]
