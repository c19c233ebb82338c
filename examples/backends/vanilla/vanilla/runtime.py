"""The accelerator, simulated: memory of its own, and numpy for its units. It needs nothing of the compiler.

A real one has the table of functions of ``devscope/runtime/native/plugin.h`` in its driver, in C; here Python
makes it.
"""

from __future__ import annotations

import ctypes
import json
from itertools import count

import numpy as np

from devscope.runtime.drivers.plugin_devices import table_of
from devscope.runtime.plugins import Runtime

OUT_OF_MEMORY, NO_SUCH_MEMORY = 2, 3
ERRORS = {1: b"the simulator failed", OUT_OF_MEMORY: b"out of memory", NO_SUCH_MEMORY: b"no such memory"}


class Accelerator:
    """Handles are numbers: what they stand for the host cannot reach."""

    capacity = 1 << 30

    def __init__(self) -> None:
        self._numbers = count(1)
        self._memory: dict[int, np.ndarray] = {}
        self._programs: dict[int, dict] = {}

    def functions(self) -> dict:
        names = ("alloc", "free", "copy_in", "copy_out", "copy_on", "build", "release", "kernel", "launch")
        table = {name: getattr(self, name) for name in names}
        table["count"] = lambda: 1
        table["describe"] = lambda number: b"Vanilla, simulated"
        table["memory_bytes"] = lambda number: self.capacity
        table["open"] = self.open
        table["close"] = lambda device: None
        table["error"] = lambda status: ERRORS.get(status, b"unknown")
        return table

    def open(self, number, out):
        out[0] = 1
        return 0

    def alloc(self, device, size, out):
        if sum(memory.nbytes for memory in self._memory.values()) + size > self.capacity:
            return OUT_OF_MEMORY
        number = next(self._numbers)
        self._memory[number] = np.zeros(size, np.uint8)
        out[0] = number
        return 0

    def free(self, device, memory):
        return 0 if self._memory.pop(memory, None) is not None else NO_SUCH_MEMORY

    def copy_in(self, device, memory, offset, host, size):
        ctypes.memmove(self._memory[memory].ctypes.data + offset, host, size)
        return 0

    def copy_out(self, device, memory, offset, host, size):
        ctypes.memmove(host, self._memory[memory].ctypes.data + offset, size)
        return 0

    def copy_on(self, device, source, source_offset, target, target_offset, size):
        self._memory[target][target_offset : target_offset + size] = self._memory[source][
            source_offset : source_offset + size
        ]
        return 0

    def build(self, device, binary, size, out):
        number = next(self._numbers)
        self._programs[number] = json.loads(ctypes.string_at(binary, size))
        out[0] = number
        return 0

    def release(self, device, program):
        self._programs.pop(program, None)

    def kernel(self, device, program, name, out):
        out[0] = program
        return 0

    def launch(self, device, kernel, cells, count):
        program = self._programs[kernel]
        values, at = [], 0
        for rank in program["ranks"]:
            sizes = cells[at + 1 : at + 1 + rank]
            length = int(np.prod(sizes, dtype=np.int64)) * 4
            values.append(self._memory[cells[at]][:length].view(np.float32).reshape(sizes))
            at += 1 + rank
        operands = [values[number] for number in program["operands"]]
        values[-1][...] = UNITS[program["op"]](program, *operands)
        return 0


def dense(program, a, b, bias):
    return np.maximum(a @ b + bias, np.float32(0))


def conv2d(program, image, filters):
    (dy, dx), (sy, sx) = program["dilations"], program["strides"]
    height, width, _, _ = filters.shape
    span = (height - 1) * dy + 1, (width - 1) * dx + 1
    windows = np.lib.stride_tricks.sliding_window_view(image, span, axis=(1, 2))
    windows = windows[:, ::sy, ::sx, :, ::dy, ::dx]
    return np.einsum("nyxchw,hwcf->nyxf", windows, filters)


UNITS = {"dense": dense, "conv2d": conv2d, "matmul": lambda program, a, b: a @ b}


class VanillaRuntime(Runtime):
    name = "vanilla"
    advice = "pip install devscope-vanilla"

    def device_table(self) -> int:
        if not hasattr(VanillaRuntime, "_table"):
            VanillaRuntime._table = table_of(Accelerator().functions())
        return ctypes.addressof(VanillaRuntime._table)
