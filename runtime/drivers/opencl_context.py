"""OpenCL contexts: what says which devices reach each other's memory."""

from __future__ import annotations

import threading
from ctypes import c_void_p
from dataclasses import dataclass, field

from devscope.runtime.drivers.opencl_api import OpenCLLibrary


@dataclass
class SharedContext:
    """The ``cl_context`` of devices that reach each other's memory: made at the first use, one per process."""

    library: OpenCLLibrary
    devices: list[int]
    _handle: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self) -> int:
        """The context. Raises :class:`DeviceError`."""
        with self._lock:
            if self._handle is None:
                devices = (c_void_p * len(self.devices))(*self.devices)
                self._handle = self.library.create("clCreateContext", None, len(self.devices), devices, None, None)
            return self._handle
