"""Single compute units of OpenCL devices as devices: ``opencl:0.1`` is the second one of ``opencl:0``.

Programs run on them side by side, each on its own core; they share a context, hence reach each other's memory.

They are polled: CPU drivers let a thread that waits do the device's work. Of a compute unit that would be a second
core, and the device's own one is idle until that thread waits again.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache

from devscope.runtime.drivers import opencl_api as cl
from devscope.runtime.drivers.opencl_device import OpenCLDevice, SharedContext, opencl_devices


def compute_unit(name: str) -> OpenCLDevice | None:
    """The device called ``opencl:N.K``; None if there is none. Raises :class:`DeviceError`."""
    parent, _, _ = name.partition(".")
    return next((unit for unit in _compute_units(parent) if unit.name == name), None)


@cache
def _compute_units(parent_name: str) -> list[OpenCLDevice]:
    parent = next((device for device in opencl_devices()[0] if device.name == parent_name), None)
    if parent is None or (not parent.partitionable and parent.compute_units > 1):
        return []
    if parent.compute_units == 1:
        return [replace(parent, name=f"{parent_name}.0")]
    handles = (ctypes.c_void_p * parent.compute_units)()
    count = ctypes.c_uint32()
    properties = (ctypes.c_ssize_t * 3)(cl.DEVICE_PARTITION_EQUALLY, 1, 0)
    parent.library.call(
        "clCreateSubDevices", parent.handle, properties, len(handles), handles, ctypes.byref(count)
    )
    units = [handle for handle in handles[: count.value] if handle]
    shared = SharedContext(parent.library, units)
    return [
        replace(
            parent,
            handle=handle,
            name=f"{parent_name}.{index}",
            compute_units=1,
            shared_context=shared,
            polled=True,
        )
        for index, handle in enumerate(units)
    ]
