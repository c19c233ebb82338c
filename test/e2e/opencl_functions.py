"""The OpenCL functions that the native runtime calls for an executable, for tests that replace them."""

from __future__ import annotations

import ctypes
from typing import Any

from devscope.runtime.drivers.opencl_device import ClQueue, OpenCL
from devscope.runtime.executable import Executable


def opencl_queues(executable: Executable) -> list[Any]:
    """The native ``ClQueue`` of every OpenCL device of an executable; ``cl`` is the address of the functions."""
    records = executable._pool.instances[0].records  # pyright: ignore[reportPrivateUsage]
    return [ClQueue.from_address(record.state) for record in records if record.state]


def opencl_functions(executable: Executable) -> Any:
    """A copy of the table of functions: a struct whose fields have the functions' names."""
    return OpenCL.from_buffer_copy(ctypes.string_at(opencl_queues(executable)[0].cl, ctypes.sizeof(OpenCL)))
