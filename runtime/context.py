"""The native context of one executable: its devices, kernels, constants and counters."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import DevscopeError
from devscope.runtime.arenas import Arenas
from devscope.runtime.arrays import free_memory
from devscope.runtime.cache import DiskCache
from devscope.runtime.device_buffer import close_buffer
from devscope.runtime.device_error import describe_error
from devscope.runtime.devices import PhysicalDevice
from devscope.runtime.drivers.opencl import OpenCLDevice, OpenCLProgram
from devscope.runtime.native import layout
from devscope.runtime.program import DeviceSpec, Program, memory_of
from devscope.runtime.returned_memory import ReturnedMemory

FREE_LIST_ENTRIES = 256
"""Most buffers that a device keeps for reuse."""

HOST_FREE_LIST_ENTRIES = 1024
"""Most blocks of host memory that an executable keeps for reuse."""

FREE_LIST_SHARE = 8
"""A device, or the host, keeps at most this fraction of its memory for reuse."""


@dataclass(frozen=True)
class CopyCount:
    """A number of copies and the bytes that they moved."""

    copies: int = 0
    bytes: int = 0

    def __add__(self, other: CopyCount) -> CopyCount:
        return CopyCount(self.copies + other.copies, self.bytes + other.bytes)


@dataclass(frozen=True)
class Counters:
    """What an executable did on its devices, since it was made or since the counters were reset.

    The dictionaries are keyed by virtual device. ``allocations`` counts buffers that the program asked for,
    ``driver_allocations`` those that could not be served from freed ones. ``copies`` is keyed by source and
    destination; pairs without copies are left out. h2d, d2h, d2d: copies to devices, from devices, and
    between or inside devices. ``live`` is not a sum: the buffers that the program has now and will free (its
    constants stay), none between calls. ``builds``: programs that drivers built or loaded. For the host,
    allocations are blocks of memory, and the driver is the C library.
    """

    launches: dict[str, int] = field(default_factory=dict[str, int])
    allocations: dict[str, int] = field(default_factory=dict[str, int])
    driver_allocations: dict[str, int] = field(default_factory=dict[str, int])
    copies: dict[tuple[str, str], CopyCount] = field(default_factory=dict[tuple[str, str], CopyCount])
    h2d: CopyCount = CopyCount()
    d2h: CopyCount = CopyCount()
    d2d: CopyCount = CopyCount()
    live: dict[str, int] = field(default_factory=dict[str, int])
    builds: int = 0


class NativeContext:
    """Owns every driver object of one executable. Not thread-safe; the executable holds a lock.

    Raises :class:`DeviceError` when a driver refuses a program, a kernel or a queue; what was made until
    then is released.
    """

    def __init__(
        self,
        program: Program,
        physical: Mapping[str, PhysicalDevice],
        open_cache: Callable[[], DiskCache | None],
    ) -> None:
        self._specs = program.slots()
        self._physical = [physical[spec.name] for spec in self._specs]
        self._open_cache = open_cache
        self._keep: list[Any] = []
        self._programs: dict[tuple[str, bytes], OpenCLProgram] = {}
        count = len(self._specs)
        self._devices = (layout.Device * count)()
        self._traffic = (layout.Traffic * (count * count))()
        self._context = layout.Context(
            device_count=count,
            devices=ctypes.addressof(self._devices),
            constant_count=len(program.constants),
            constants=ctypes.addressof(self._constants(program)),
            traffic=ctypes.addressof(self._traffic),
        )
        self.returned = ReturnedMemory()
        self._builds = 0
        self._uploads: list[Any] = []
        self.arenas = Arenas(program, self._physical, self._finish)
        self._keep_freed(self._devices[0], HOST_FREE_LIST_ENTRIES, _host_memory())
        try:
            for spec, device, record in zip(self._specs, self._physical, self._devices, strict=True):
                self._uploads.append(self._array(ctypes.c_void_p, len(program.constants)))
                if device.opencl is not None:
                    self._open(spec, device.opencl, record, self._uploads[-1])
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> int:
        """Address of the context struct, for ``@devscope_context``."""
        return ctypes.addressof(self._context)

    def take_error(self) -> DevscopeError:
        """The error of the last call, which failed, as an exception; clears it."""
        exception = describe_error(self._context.error, self._specs, self._physical)
        self._context.error = layout.Error()
        return exception

    def counters(self) -> Counters:
        """A copy of the counters."""
        launches: dict[str, int] = defaultdict(int)
        allocations: dict[str, int] = defaultdict(int)
        driver_allocations: dict[str, int] = defaultdict(int)
        live: dict[str, int] = defaultdict(int)
        for spec, device in zip(self._specs, self._devices, strict=True):
            launches[spec.name] += device.counters.launches
            allocations[spec.name] += device.counters.allocations
            driver_allocations[spec.name] += device.counters.driver_allocations
            live[spec.name] += device.live.count
        copies: dict[tuple[str, str], CopyCount] = defaultdict(CopyCount)
        totals = {"h2d": CopyCount(), "d2h": CopyCount(), "d2d": CopyCount()}
        for index, cell in enumerate(self._traffic):
            if cell.copies:
                source, target = divmod(index, len(self._specs))
                count = CopyCount(cell.copies, cell.bytes)
                copies[self._specs[source].name, self._specs[target].name] += count
                direction = self._direction(source, target)
                if direction is not None:
                    totals[direction] += count
        return Counters(
            dict(launches),
            dict(allocations),
            dict(driver_allocations),
            dict(copies),
            **totals,
            live=dict(live),
            builds=self._builds,
        )

    def reset_counters(self) -> None:
        """Sets all counters to zero."""
        ctypes.memset(ctypes.addressof(self._traffic), 0, ctypes.sizeof(self._traffic))
        for device in self._devices:
            device.counters = layout.DeviceCounters()
        self._builds = 0

    def take_back_memory(self) -> None:
        """Lets the next call use the memory of results that are gone."""
        self.returned.hand_over(self._context)

    def close(self) -> None:
        """Waits for the devices and releases every driver object."""
        self.returned.close()
        _free_blocks(self._context, self._devices[0].free_list)
        self._finish()
        for physical, record, uploads in zip(self._physical, self._devices, self._uploads, strict=False):
            if physical.opencl is not None:
                _close_device(physical.opencl, record, uploads)
            free_memory(record.live.entries)
            record.live = layout.LiveList()
        self.arenas.close()
        for program in self._programs.values():
            program.release()
        self._programs.clear()
        self._uploads.clear()

    def _finish(self) -> None:
        """Waits for all work, of all devices: queues use buffers of each other."""
        for physical, record in zip(self._physical, self._devices, strict=True):
            for queue in (record.queue, record.transfers):
                if physical.opencl is not None and queue:
                    physical.opencl.finish(queue)

    def _direction(self, source: int, target: int) -> str | None:
        match self._physical[source].type == "cpu", self._physical[target].type == "cpu":
            case True, True:
                return None
            case True, False:
                return "h2d"
            case False, True:
                return "d2h"
            case _:
                return "d2d"

    def _array(self, element: Any, count: int) -> Any:
        """A zeroed native array that lives as long as the context; never of length 0."""
        array = (element * max(count, 1))()
        self._keep.append(array)
        return array

    def _constants(self, program: Program) -> Any:
        array = self._array(layout.Constant, len(program.constants))
        for record, data in zip(array, program.constant_data, strict=False):
            memory = memory_of(data)
            self._keep.append(memory)
            record.data = memory.ctypes.data
            record.bytes = memory.nbytes
        return array

    def _keep_freed(self, record: layout.Device, capacity: int, memory: int) -> None:
        record.free_list.capacity = capacity
        record.free_list.limit = memory // FREE_LIST_SHARE
        record.free_list.entries = ctypes.addressof(self._array(layout.FreeBuffer, capacity))

    def _open(self, spec: DeviceSpec, device: OpenCLDevice, record: layout.Device, uploads: Any) -> None:
        record.kind = layout.Kind.OPENCL
        record.domain = device.context()
        record.driver = ctypes.addressof(device.library.native_table)
        record.constants = ctypes.addressof(uploads)
        self._keep_freed(record, FREE_LIST_ENTRIES, device.memory_bytes)
        record.shared = int(device.shares_memory)
        record.polled = int(device.polled)
        record.most_work_items = device.max_workgroup_size
        record.most_local = device.local_memory_bytes
        record.queue = device.create_queue()
        if not device.shares_memory:
            record.transfers = device.create_queue()
        if spec.kernels:
            self._create_kernels(spec, device, record)

    def _create_kernels(self, spec: DeviceSpec, device: OpenCLDevice, record: layout.Device) -> None:
        programs = [self._build(binary, device) for binary in spec.binaries]
        kernels = self._array(layout.Kernel, len(spec.kernels))
        record.kernels = ctypes.addressof(kernels)
        for kernel, kernel_spec in zip(kernels, spec.kernels, strict=False):
            sizes = self._array(ctypes.c_int64, len(kernel_spec.arg_sizes))
            sizes[: len(kernel_spec.arg_sizes)] = kernel_spec.arg_sizes
            kernel.argument_count = len(kernel_spec.arg_sizes)
            kernel.sizes = ctypes.addressof(sizes)
            program = programs[kernel_spec.binary]
            kernel.handle = program.create_kernel(kernel_spec.name, len(kernel_spec.arg_sizes))
            record.kernel_count += 1

    def _build(self, binary: bytes, device: OpenCLDevice) -> OpenCLProgram:
        """Builds a binary once per physical device, from the driver's own binary if the cache has it."""
        known = (device.name, binary)
        if known not in self._programs:
            digest = hashlib.sha256(device.identity.encode() + b"\0" + binary).hexdigest()
            cache = self._open_cache()
            cached = cache.load_blob(digest) if cache else None
            program, fresh = device.build(binary, cached)
            self._builds += 1
            self._programs[known] = program
            if cache and fresh is not None:
                cache.store_blob(digest, fresh)
        return self._programs[known]


def _host_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _free_blocks(context: layout.Context, kept: layout.FreeList) -> None:
    for block in context.returned[: context.returned_count]:
        free_memory(block)
    context.returned_count = 0
    for entry in (layout.FreeBuffer * kept.count).from_address(kept.entries or 0):
        free_memory(entry.handle)
    kept.count = kept.bytes = 0


def _close_device(device: OpenCLDevice, record: layout.Device, uploads: Sequence[int | None]) -> None:
    for queue in (record.queue, record.transfers):
        if queue:
            device.release_queue(queue)
    record.queue = record.transfers = None
    for event in record.events:
        if event:
            device.release_event(event)
    record.events = (ctypes.c_void_p * layout.EVENTS)()
    free_list = record.free_list
    if free_list.entries:
        entries = (layout.FreeBuffer * free_list.count).from_address(free_list.entries)
        for entry in entries:
            if entry.handle:
                close_buffer(device, entry.handle)
        free_list.count = 0
    for buffer in uploads:
        if buffer:
            close_buffer(device, buffer)
    kernels = (layout.Kernel * record.kernel_count).from_address(record.kernels or 0)
    for kernel in kernels:
        if kernel.handle:
            device.release_kernel(kernel.handle)
    record.kernel_count = 0
