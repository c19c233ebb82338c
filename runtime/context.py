"""The native context of a call: devices, kernels, constants and counters."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import DevscopeError
from devscope.runtime.arenas import Arenas
from devscope.runtime.builds import Builds
from devscope.runtime.device_error import describe_error
from devscope.runtime.drivers import Device
from devscope.runtime.linker import HostLibrary
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
    """Everything that one call at a time needs besides the code. Not thread-safe; see :class:`Instance`.

    Raises :class:`DeviceError` when a driver refuses a program, a kernel or a queue; what was made until
    then is released.
    """

    def __init__(self, program: Program, physical: Sequence[Device], library: HostLibrary, builds: Builds) -> None:
        self._library = library
        self.layout = layout = library.layout
        self.specs = program.slots()
        self.physical = physical
        self._builds = builds
        self._keep: list[Any] = []
        self._close_steps: list[Callable[[], None]] = []
        count = len(self.specs)
        self.records = (layout.Device * count)()
        self._traffic = (layout.Traffic * (count * count))()
        self.arenas = Arenas(program, physical, library)
        self._context = layout.Context(
            device_count=count,
            devices=ctypes.addressof(self.records),
            constant_count=len(program.constants),
            constants=self._constants(program),
            traffic=ctypes.addressof(self._traffic),
            arenas=self.arenas.address,
        )
        self.arenas.context = self.address
        self.returned = ReturnedMemory()
        try:
            for spec, device, record in zip(self.specs, physical, self.records, strict=True):
                self._open(spec, device, record)
        except BaseException:
            self._release()
            raise

    @property
    def address(self) -> int:
        """Address of the context struct."""
        return ctypes.addressof(self._context)

    def take_error(self) -> DevscopeError:
        """The error of the last call, which failed, as an exception; clears it."""
        exception = describe_error(self._context.error, self.specs, self.physical)
        self._context.error = self.layout.Error()
        return exception

    def reset_counters(self) -> None:
        """Sets all counters to zero."""
        ctypes.memset(ctypes.addressof(self._traffic), 0, ctypes.sizeof(self._traffic))
        for device in self.records:
            device.counters = self.layout.Counters()

    def take_back_memory(self) -> None:
        """Lets the next call use the memory of results that are gone."""
        self.returned.hand_over(self._context)

    def close(self) -> None:
        """Waits for the devices and releases everything."""
        self.returned.close()
        self._library.close_context(self.address)
        self._release()

    def _release(self) -> None:
        """Releases what drivers made for :meth:`_open`, last things first."""
        while self._close_steps:
            self._close_steps.pop()()

    def _array(self, element: Any, values: Iterable[Any]) -> int:
        """Address of an array that lives as long as the context; 0 if it is empty."""
        items = list(values)
        array = (element * len(items))(*items)
        self._keep.append(array)
        return ctypes.addressof(array) if items else 0

    def _constants(self, program: Program) -> int:
        memories = [memory_of(data) for data in program.constant_data]
        self._keep.append(memories)
        return self._array(
            self.layout.Constant,
            [self.layout.Constant(data=memory.ctypes.data, bytes=memory.nbytes) for memory in memories],
        )

    def _open(self, spec: DeviceSpec, device: Device, record: Any) -> None:
        on_host = device.type == "cpu"
        record.driver = self._library.drivers[device.type]
        record.free_list.capacity = HOST_FREE_LIST_ENTRIES if on_host else FREE_LIST_ENTRIES
        record.free_list.limit = device.memory_bytes // FREE_LIST_SHARE
        record.most_work_items = device.max_workgroup_size
        record.most_local = device.local_memory_bytes
        self._close_steps.append(device.open(record, self.layout))
        programs = [self._builds.get(device, binary) for binary in spec.binaries] if spec.kernels else []
        kernels: list[Any] = []
        for kernel in spec.kernels:
            program, sizes = programs[kernel.binary], kernel.arg_sizes
            handle = program.create_kernel(kernel.name, len(sizes))
            self._close_steps.append(lambda program=program, handle=handle: program.release_kernel(handle))
            kernels.append(
                self.layout.Kernel(
                    handle=handle,
                    argument_count=len(sizes),
                    sizes=self._array(ctypes.c_int64, sizes),
                    local_count=sum(size < 0 for size in sizes),
                )
            )
        record.kernels = self._array(self.layout.Kernel, kernels)
        record.kernel_count = len(kernels)

    def copy_counts(self) -> Iterator[tuple[int, int, CopyCount]]:
        """(source slot, target slot, copies) for every pair that has some."""
        for index, cell in enumerate(self._traffic):
            if cell.copies:
                yield *divmod(index, len(self.specs)), CopyCount(cell.copies, cell.bytes)


def read_counters(contexts: Sequence[NativeContext], builds: int) -> Counters:
    """The sums over all contexts of an executable."""
    launches, allocations, driver_allocations, live = (defaultdict[str, int](int) for _ in range(4))
    copies = defaultdict[tuple[str, str], CopyCount](CopyCount)
    totals = {direction: CopyCount() for direction in ("h2d", "d2h", "d2d")}
    for context in contexts:
        for spec, record in zip(context.specs, context.records, strict=True):
            launches[spec.name] += record.counters.launches
            allocations[spec.name] += record.counters.allocations
            driver_allocations[spec.name] += record.counters.driver_allocations
            live[spec.name] += record.live.count
        for source, target, count in context.copy_counts():
            copies[context.specs[source].name, context.specs[target].name] += count
            ends = "".join("h" if context.physical[slot].type == "cpu" else "d" for slot in (source, target))
            if ends != "hh":
                totals[f"{ends[0]}2{ends[1]}"] += count
    return Counters(
        dict(launches),
        dict(allocations),
        dict(driver_allocations),
        dict(copies),
        **totals,
        live=dict(live),
        builds=builds,
    )
