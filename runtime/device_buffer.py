"""Releases the native runtime's records of buffers."""

from __future__ import annotations

from devscope.runtime.arrays import free_memory
from devscope.runtime.drivers.opencl import OpenCLDevice
from devscope.runtime.native import layout


def close_buffer(device: OpenCLDevice, address: int) -> None:
    """Releases the buffer whose record is at ``address``; no command may use it any more."""
    buffer = layout.Buffer.from_address(address)
    views = buffer.views
    if buffer.foreign:
        device.release_event(buffer.foreign)
    while views:
        view = layout.Buffer.from_address(views)
        if view.foreign:
            device.release_event(view.foreign)
        following = view.views
        free_memory(views)
        views = following
    if buffer.memory:
        # The memory of a part belongs to the whole.
        device.release_buffer(buffer.memory, None if buffer.arena else buffer.host)
    free_memory(address)
