"""The OpenCL functions that the native runtime calls for an executable, for tests that replace them."""

from __future__ import annotations

import ctypes
from typing import Any

from devscope.runtime.executable import Executable


def opencl_queues(executable: Executable) -> list[Any]:
    """The native ``ClQueue`` of every OpenCL device of an executable; ``cl`` is the address of the functions."""
    context = executable._pool.instances[0].context  # pyright: ignore[reportPrivateUsage]
    layout = context.layout
    records = context.records
    return [layout.ClQueue.from_address(record.state) for record in records if record.state]


def opencl_functions(executable: Executable) -> Any:
    """A copy of the table of functions: a struct whose fields have the functions' names."""
    context = executable._pool.instances[0].context  # pyright: ignore[reportPrivateUsage]
    table = context.layout.OpenCL
    return table.from_buffer_copy(ctypes.string_at(opencl_queues(executable)[0].cl, ctypes.sizeof(table)))
