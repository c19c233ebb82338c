"""Memory between margins of known bytes, which tell whether code of a backend wrote where it should not."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from devscope.agreement import Array
from devscope.runtime.drivers import Device
from devscope.runtime.drivers.plugin_devices import PluginDevice, functions_of, table_of

_MARGIN = 4096
"""Bytes: what is rounded up to whole tiles is caught."""
_ALIGNMENT = 64


class GuardedArray:
    """``array``: one such as ``like``, filled with ``byte``, as is the memory in front of it and behind it."""

    def __init__(self, like: Array, byte: int) -> None:
        self._byte = byte
        self._memory = np.full(like.nbytes + 2 * _MARGIN + _ALIGNMENT, byte, np.uint8)
        self._start = _MARGIN + -self._memory.ctypes.data % _ALIGNMENT
        self._end = self._start + like.nbytes
        self.array = self._memory[self._start : self._end].view(like.dtype).reshape(like.shape)

    def damage(self) -> str:
        """Where something was written outside of the array; empty if nowhere."""
        sides = {"in front of": self._memory[: self._start], "behind": self._memory[self._end :]}
        return next((side for side, margin in sides.items() if (margin != self._byte).any()), "")


class _GuardedDevice:
    """The functions of a device whose buffers have margins behind them: handles have nothing in front."""

    def __init__(self, table: Any, results: int) -> None:
        self.damage: list[str] = []
        self._table, self._results = table, results
        self._sizes: dict[int, int] = {}

    def alloc(self, device: int, size: int, out: Any) -> int:
        status: int = self._table.alloc(device, size + _MARGIN, out)
        if status == 0:
            self._sizes[out[0]] = size
            status = self._table.copy_in(device, out[0], size, b"\xff" * _MARGIN, _MARGIN)
        return status

    def free(self, device: int, memory: int) -> int:
        self._sizes.pop(memory, None)
        return self._table.free(device, memory)

    def launch(self, device: int, kernel: int, cells: Any, count: int) -> int:
        before = self._contents(device)
        status: int = self._table.launch(device, kernel, cells, count)
        changed = 0
        for memory, (data, margin) in self._contents(device).items():
            changed += data != before[memory][0]
            if margin != before[memory][1]:
                self.damage.append("it writes behind the end of a buffer")
        if changed > self._results:
            self.damage.append(f"a launch writes to {changed} buffers, and gives {self._results}")
        return status

    def _contents(self, device: int) -> dict[int, tuple[bytes, bytes]]:
        found: dict[int, tuple[bytes, bytes]] = {}
        for memory, size in self._sizes.items():
            copy = ctypes.create_string_buffer(size + _MARGIN)
            self._table.copy_out(device, memory, 0, ctypes.addressof(copy), size + _MARGIN)
            found[memory] = copy.raw[:size], copy.raw[size:]
        return found


@contextmanager
def guarded_device(device: Device | None, results: int) -> Generator[list[str]]:
    """Programs that are loaded meanwhile get guarded memory on a device, if it is a backend's own. Gives a list of
    what calls of theirs damage. ``results``: how many a launch has at most.
    """
    if not isinstance(device, PluginDevice):
        yield []
        return
    table = device.table
    guards = _GuardedDevice(table, results)
    own = {name: getattr(guards, name) for name in ("alloc", "free", "launch")}
    device.table = table_of({**functions_of(table), **own})
    try:
        yield guards.damage
    finally:
        device.table = table
