"""The storage of buffers whose lifetime the compiler knows: one arena per memory of an executable.

Arenas are made at the first call of an entry that needs them, and grow at the first call of one that needs more.
Other calls find their buffers where they were: they ask neither the C library nor a driver for memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.linker import HostLibrary
from devscope.runtime.native import abi
from devscope.runtime.program import ArenaSpec, Program

HOST_SLOT = 0


class Arenas:
    """The arenas of one native context, whose address is :attr:`context`. Not thread-safe."""

    def __init__(self, program: Program, physical: Sequence[Device], library: HostLibrary) -> None:
        self.context = 0
        self._specs = program.arenas
        self._set_arena = library.set_arena
        self._records = (abi.Arena * len(physical))()
        self._places: list[Any] = []
        self._host: Any = None
        self._prepared: set[str] = set()
        for spec in self._specs:
            places = [abi.Place(offset, size) for offset, size in spec.places]
            array = (abi.Place * len(places))(*places)
            self._places.append(array)
            record = self._records[spec.slot]
            record.places, record.place_count = ctypes.addressof(array), len(places)
            record.separate = int(physical[spec.slot].base_alignment > spec.alignment)

    @property
    def address(self) -> int:
        """Address of the records, one for each slot."""
        return ctypes.addressof(self._records)

    def prepare(self, entry: str) -> None:
        """Called before each call of ``entry``. Raises :class:`DeviceError` when host memory runs out."""
        if entry in self._prepared:
            return
        for spec in self._specs:
            needed = spec.needed.get(entry, 0)
            if needed > self._records[spec.slot].bytes:
                memory = self._allocate(spec, needed) if spec.slot == HOST_SLOT else None
                self._set_arena(self.context, spec.slot, needed, memory)
        self._prepared.add(entry)

    def _allocate(self, spec: ArenaSpec, size: int) -> int:
        try:
            self._host = np.empty(size + spec.alignment, np.uint8)
        except (MemoryError, ValueError):
            raise DeviceError(
                f"cpu:0 (host): allocating {format_bytes(size)} failed: out of host memory"
            ) from None
        return -(-self._host.ctypes.data // spec.alignment) * spec.alignment
