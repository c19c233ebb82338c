"""NVIDIA's driver as the runtime calls it, played by Python: streams do what was enqueued as late as they may.

Kernels are the emulator's. Between two calls streams go on at random, so that what nothing orders happens in any
order.
"""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulation import EmulatedProgram, emulator

from devscope.runtime.drivers.cuda_api import _SIGNATURES, _TYPES  # pyright: ignore[reportPrivateUsage]
from devscope.runtime.native import abi
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE

NOT_READY, NOT_FOUND, INVALID_VALUE, NO_CONTEXT, ILLEGAL_ADDRESS, OUT_OF_MEMORY = 600, 500, 1, 201, 700, 2
MEMORY = 1 << 24

_CALLED_BY_C = {
    "cuMemAlloc_v2": "pz",
    "cuMemFree_v2": "l",
    "cuMemcpyHtoDAsync_v2": "lpzp",
    "cuMemcpyDtoHAsync_v2": "plzp",
    "cuMemcpyDtoDAsync_v2": "llzp",
    "cuPointerGetAttribute": "pil",
    "cuLaunchKernel": "puuuuuuuppp",
    "cuStreamWaitEvent": "ppu",
    "cuEventCreate": "pu",
    "cuEventRecord": "pp",
    "cuEventQuery": "p",
    "cuEventSynchronize": "p",
}
_WITHOUT_CONTEXT = ("cuInit", "cuDriver", "cuGet", "cuDevice", "cuCtx")

_KERNEL = re.compile(r"^define (?:\w+ )*ptx_kernel void @([\w.$]+)\((.*)\)", re.MULTILINE)


@dataclass
class Record:
    """What one call of cuEventRecord waits for."""

    done: bool = False


@dataclass
class Event:
    record: Record | None = None


@dataclass
class Stream:
    """Commands: what they wait for, if anything, and what they do."""

    commands: list[tuple[Record | None, Callable[[], None]]] = field(default_factory=list)


@dataclass
class Function:
    handle: int
    parameters: int


class FakeCuda:
    """Functions as attributes, as a loaded library has them. ``calls``: how often each one was called."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.objects: dict[int, Any] = {}
        self.count = 0
        self.memory: dict[int, int] = {}
        self.contexts: list[int] = []
        self.calls: dict[str, int] = {}
        self.error = 0
        """What every call in a context fails with from now on."""
        self.fails: dict[str, int] = {}
        """Statuses for the next call of functions."""
        self.capability = 9, 0
        self.log = b""
        self.page_locked = False
        """Is the host's memory read later?"""
        self.keep: list[Any] = []
        self.loaded = emulator()
        for name, letters in (_SIGNATURES | _CALLED_BY_C).items():
            function = getattr(self, f"_{name.removesuffix('_v2')}")
            type_ = ctypes.CFUNCTYPE(ctypes.c_int32, *(_TYPES[letter] for letter in letters))
            setattr(self, name, type_(self._guarded(name, function)))

    def _guarded(self, name: str, function: Callable[..., int | None]) -> Callable[..., int]:
        def call(*given: Any) -> int:
            self.calls[name] = self.calls.get(name, 0) + 1
            if status := self.fails.pop(name, 0):
                return status
            if name.startswith(_WITHOUT_CONTEXT):
                return function(*(0 if value is None else value for value in given)) or 0
            if not self.contexts:
                return NO_CONTEXT
            for _ in range(self.random.randrange(3)):
                self.step()
            return self.error or function(*(0 if value is None else value for value in given)) or 0

        return call

    def left(self) -> list[Any]:
        """What was made and is still there. Kernels and contexts are, too, and nobody's to release."""
        return [
            *self.memory,
            *self.contexts,
            *(one for one in self.objects.values() if not isinstance(one, Function)),
        ]

    def new(self, value: Any) -> int:
        self.count += 1
        self.objects[handle := 0x1000 + 16 * self.count] = value
        return handle

    @staticmethod
    def put(at: int, value: int) -> None:
        ctypes.c_void_p.from_address(at).value = value

    # ------------------------------------------------------------------------------------------ streams

    def streams(self) -> list[Stream]:
        return [value for value in self.objects.values() if isinstance(value, Stream)]

    def step(self) -> bool:
        """Does a command of some stream; False if none can be done."""
        ready = [one for one in self.streams() if one.commands and (one.commands[0][0] or Record(True)).done]
        if not ready:
            return False
        self.random.choice(ready).commands.pop(0)[1]()
        return True

    def until(self, done: Callable[[], bool]) -> int:
        while not done():
            assert self.step(), "streams wait for each other"
        return self.error

    def enqueue(self, stream: int, action: Callable[[], None], needed: Record | None = None) -> None:
        self.objects[stream].commands.append((needed, action))

    def _cuStreamCreate(self, out: int, _flags: int) -> None:
        self.put(out, self.new(Stream()))

    def _cuStreamSynchronize(self, stream: int) -> int:
        return self.until(lambda: not self.objects[stream].commands)

    def _cuStreamDestroy(self, stream: int) -> None:
        assert not self.objects.pop(stream).commands

    def _cuStreamWaitEvent(self, stream: int, event: int, _flags: int) -> None:
        self.enqueue(stream, lambda: None, self.objects[event].record)

    def _cuEventCreate(self, out: int, _flags: int) -> None:
        self.put(out, self.new(Event()))

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self.objects[event].record = record = Record()
        self.enqueue(stream, lambda: setattr(record, "done", True))

    def _cuEventQuery(self, event: int) -> int:
        record = self.objects[event].record
        return 0 if record is None or record.done else NOT_READY

    def _cuEventSynchronize(self, event: int) -> int:
        record = self.objects[event].record
        return self.until(lambda: record.done)

    def _cuEventDestroy(self, event: int) -> None:
        del self.objects[event]

    # ------------------------------------------------------------------------------------------- memory

    def _cuMemAlloc(self, out: int, size: int) -> int:
        address = self.loaded.emulator_alloc(size) if size < MEMORY else 0
        if not address:
            return OUT_OF_MEMORY
        self.memory[address] = size
        self.put(out, address)
        return 0

    def _cuMemFree(self, address: int) -> None:
        self.loaded.emulator_free(address, self.memory.pop(address))

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        staged = source if self.page_locked else ctypes.string_at(source, size)
        self.enqueue(stream, lambda: ctypes.memmove(target, staged, size))

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> int:
        self.enqueue(stream, lambda: ctypes.memmove(target, source, size))
        return self._cuStreamSynchronize(stream)

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self.enqueue(stream, lambda: ctypes.memmove(target, source, size))

    def _cuPointerGetAttribute(self, _out: int, _attribute: int, _pointer: int) -> int:
        return 0 if self.page_locked else INVALID_VALUE

    # ------------------------------------------------------------------------------------------ programs

    def _cuLinkCreate(self, _count: int, _keys: int, values: int, out: int) -> None:
        log, size = (ctypes.c_void_p * 2).from_address(values)
        assert size > len(self.log)
        ctypes.memmove(log, self.log, len(self.log))
        self.put(out, self.new(b""))

    def _cuLinkAddData(self, linker: int, _kind: int, data: int, size: int, *_: Any) -> None:
        self.objects[linker] = ctypes.string_at(data, size)

    def _cuLinkComplete(self, linker: int, code: int, size: int) -> None:
        self.keep.append(kept := ctypes.create_string_buffer(self.objects[linker]))
        self.put(code, ctypes.addressof(kept))
        ctypes.c_size_t.from_address(size).value = len(kept)

    def _cuLinkDestroy(self, linker: int) -> None:
        del self.objects[linker]

    def _cuModuleLoadData(self, out: int, data: int) -> None:
        text = ctypes.string_at(data).decode()
        self.put(out, self.new((EmulatedProgram(text), dict(_KERNEL.findall(text)))))

    def _cuModuleUnload(self, module: int) -> None:
        self.objects.pop(module)[0].release()

    def _cuModuleGetFunction(self, out: int, module: int, name: bytes) -> int:
        program, kernels = self.objects[module]
        if name.decode() not in kernels:
            return NOT_FOUND
        parameters = kernels[name.decode()]
        handle = program.create_kernel(name.decode(), 0)
        self.put(out, self.new(Function(handle, parameters.count("%"))))
        return 0

    def _cuFuncGetAttribute(self, out: int, _which: int, _function: int) -> None:
        ctypes.c_int32.from_address(out).value = 0

    def _cuFuncSetAttribute(self, _function: int, _which: int, _value: int) -> None: ...

    def _cuLaunchKernel(self, function: int, *given: int) -> None:
        grid, block, shared, stream, arguments = given[:3], given[3:6], given[6], given[7], given[8]
        called: Function = self.objects[function]
        pointers = (ctypes.c_void_p * called.parameters).from_address(arguments)
        cells = [ctypes.c_int64.from_address(at).value for at in pointers]
        self.enqueue(stream, lambda: self._run(called, (*grid, *block), cells, shared))

    def _run(self, function: Function, sizes: tuple[int, ...], cells: list[int], shared: int) -> None:
        kinds = (ctypes.c_int64 * (len(cells) + 1))(*[8] * len(cells), DYNAMIC_LOCAL_SIZE)
        values = (ctypes.c_int64 * (len(cells) + 1))(*cells, shared)
        kernel = abi.Kernel(function.handle, len(cells) + 1, ctypes.addressof(kinds), 1)
        table = (ctypes.c_void_p * 6).in_dll(self.loaded, "emulator_driver")
        launch = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(table[5])
        size = (ctypes.c_int64 * 6)(*sizes)
        if launch(None, *map(ctypes.addressof, (kernel, size, values))):
            self.error = ILLEGAL_ADDRESS

    # ------------------------------------------------------------------------------------------- devices

    def _cuInit(self, _flags: int) -> None: ...

    def _cuDriverGetVersion(self, out: int) -> None:
        ctypes.c_int32.from_address(out).value = 13000

    def _cuGetErrorName(self, status: int, out: int) -> int:
        return self._text(out, f"CUDA_ERROR_{status}")

    def _cuGetErrorString(self, status: int, out: int) -> int:
        return self._text(out, f"error {status}")

    def _text(self, out: int, text: str) -> int:
        self.keep.append(kept := ctypes.create_string_buffer(text.encode()))
        self.put(out, ctypes.addressof(kept))
        return 0

    def _cuDeviceGetCount(self, out: int) -> None:
        ctypes.c_int32.from_address(out).value = 2

    def _cuDeviceGet(self, out: int, number: int) -> None:
        ctypes.c_int32.from_address(out).value = number

    def _cuDeviceGetName(self, out: int, _size: int, device: int) -> None:
        ctypes.memmove(out, f"fake {device}".encode() + b"\0", 7)

    def _cuDeviceGetAttribute(self, out: int, which: int, _device: int) -> None:
        ctypes.c_int32.from_address(out).value = {
            1: 1024,
            16: 1,
            75: self.capability[0],
            76: self.capability[1],
            97: 227 << 10,
        }[which]

    def _cuDeviceTotalMem(self, out: int, _device: int) -> None:
        ctypes.c_size_t.from_address(out).value = MEMORY

    def _cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        self.put(out, 0x100 + device)

    def _cuCtxPushCurrent(self, context: int) -> None:
        self.contexts.append(context)

    def _cuCtxPopCurrent(self, out: int) -> None:
        self.put(out, self.contexts.pop())
