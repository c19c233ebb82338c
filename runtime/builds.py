"""What drivers build from the binaries of one executable."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

from devscope.runtime.cache import DiskCache
from devscope.runtime.drivers import Device, DeviceProgram


class Builds:
    """Builds a binary once per physical device, from the driver's own binary if the cache has it."""

    def __init__(self, open_cache: Callable[[], DiskCache | None]) -> None:
        self.count = 0
        """How many programs drivers built or loaded since this was last set to 0."""
        self._open_cache = open_cache
        self._programs: dict[tuple[str, bytes], DeviceProgram] = {}
        self._lock = threading.Lock()

    def get(self, device: Device, binary: bytes) -> DeviceProgram:
        """The program of a binary. Raises :class:`DeviceError` when the driver refuses it."""
        with self._lock:
            known = (device.name, binary)
            if known not in self._programs:
                digest = hashlib.sha256(device.identity.encode() + b"\0" + binary).hexdigest()
                cache = self._open_cache()
                program, fresh = device.build(binary, cache.load_blob(digest) if cache else None)
                self.count += 1
                self._programs[known] = program
                if cache and fresh is not None:
                    cache.store_blob(digest, fresh)
            return self._programs[known]

    def close(self) -> None:
        """Releases the programs, whose kernels are released."""
        for program in self._programs.values():
            program.release()
        self._programs.clear()
