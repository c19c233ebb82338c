"""The storage of buffers whose lifetime the compiler knows: one arena per memory of an executable.

Arenas are made at the first call of an entry that needs them, and grow at the first call of one that needs more.
Other calls find their buffers where they were: they ask neither the C library nor a driver for memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from devscope.errors import DeviceError
from devscope.runtime.device_buffer import close_buffer
from devscope.runtime.devices import PhysicalDevice
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.native import layout
from devscope.runtime.program import ArenaSpec, Program


class Arenas:
    """The arenas of one executable. Not thread-safe."""

    def __init__(self, program: Program, physical: Sequence[PhysicalDevice], finish: Callable[[], None]) -> None:
        """``finish`` waits for all work of the devices."""
        self._finish = finish
        self._specs = program.arenas
        self._physical = physical
        self._records = (layout.Arena * len(physical))()
        self._places: dict[int, Any] = {}
        self._host: Any = None
        self._prepared: set[str] = set()
        for spec in self._specs:
            places = (layout.Place * max(len(spec.places), 1))()
            for record, (offset, size) in zip(places, spec.places, strict=False):
                record.offset, record.bytes = offset, size
            self._places[spec.slot] = places
            arena = self._records[spec.slot]
            arena.places = ctypes.addressof(places)
            arena.place_count = len(spec.places)
            device = physical[spec.slot].opencl
            arena.separate = int(device is not None and device.base_alignment > spec.alignment)

    @property
    def address(self) -> int:
        """Address of the records, for ``@devscope_arenas``."""
        return ctypes.addressof(self._records)

    def prepare(self, entry: str) -> None:
        """Called before each call of ``entry``. Raises :class:`DeviceError` when host memory runs out."""
        if entry in self._prepared:
            return
        for spec in self._specs:
            record = self._records[spec.slot]
            needed = spec.needed.get(entry, 0)
            if needed > record.bytes:
                self._finish()
                self._release(spec.slot)
                if spec.slot == 0:
                    self._make_host(spec, needed)
                record.bytes = needed
        self._prepared.add(entry)

    def close(self) -> None:
        """Releases all of them; the devices' queues must be empty."""
        for spec in self._specs:
            self._release(spec.slot)
            self._records[spec.slot].bytes = 0
        self._prepared.clear()

    def _make_host(self, spec: ArenaSpec, size: int) -> None:
        try:
            memory = np.empty(size + spec.alignment, np.uint8)
        except (MemoryError, ValueError):
            raise DeviceError(f"{_HOST}: allocating {format_bytes(size)} failed: out of host memory") from None
        self._host = memory
        start = -(-memory.ctypes.data // spec.alignment) * spec.alignment
        for place in self._places[spec.slot]:
            place.memory = start + place.offset

    def _release(self, slot: int) -> None:
        device, record = self._physical[slot].opencl, self._records[slot]
        if device is None:
            self._host = None
            return
        for place in (*self._places[slot], record):  # Parts go before the whole.
            if place.memory:
                close_buffer(device, place.memory)
            place.memory = None


_HOST = "cpu:0 (host)"
