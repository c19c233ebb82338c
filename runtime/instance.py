"""A loaded program with all that one call at a time needs: code, devices, kernels, constants, memory."""

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from devscope.errors import DeviceError, DevscopeError
from devscope.runtime.device_error import describe_error
from devscope.runtime.drivers import Device, DeviceProgram
from devscope.runtime.entry import ARGUMENTS, EntryCaller
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.interrupts import leave
from devscope.runtime.linker import HostLibrary, shared_runtime
from devscope.runtime.native import abi
from devscope.runtime.plugins import raised_error, use_threads
from devscope.runtime.program import ArenaSpec, DeviceSpec, KernelSpec, Program, memory_of
from devscope.runtime.state import count_on_devices, states_of

FREE_LIST_ENTRIES = 256
"""Most buffers that a device keeps for reuse."""

HOST_FREE_LIST_ENTRIES = 1024
"""Most blocks of host memory that an executable keeps for reuse."""

FREE_LIST_SHARE = 8
"""A device, or the host, keeps at most this fraction of its memory for reuse."""

_LEFT = (abi.Code.INTERRUPTED, abi.Code.ENDED)


class Instance:
    """A copy of a program's code with a native context of its own. Not thread-safe; see :class:`InstancePool`.

    ``build`` gives the driver's program of a binary; a call uses at most ``threads`` threads. Raises
    :class:`DeviceError` when a driver refuses a program, a kernel or a queue; what was made is released.
    """

    def __init__(
        self,
        program: Program,
        physical: Sequence[Device],
        build: Callable[[Device, bytes], DeviceProgram],
        threads: int,
    ) -> None:
        self.thread: int | None = None
        """The thread whose call it runs."""
        self.abandoned = False
        """Whether a call was left whose work devices may still do."""
        self.specs = program.slots()
        self._physical = physical
        self._build = build
        self._keep: list[Any] = []
        self._arenas = program.arenas
        self._uses_backends = bool(program.uses)
        self._prepared: set[str] = set()
        count, states = len(self.specs), count_on_devices(states_of(program))
        self.records = (abi.Device * count)()
        self.traffic = (abi.Traffic * (count * count))()
        self._arena_records = (abi.Arena * count)()
        with contextlib.ExitStack() as made:
            shared = shared_runtime()
            returned = ctypes.CFUNCTYPE(ctypes.c_void_p)(shared["devscope_open_returned"])()
            made.callback(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(shared["devscope_close_returned"]), returned)
            built_in = {device.native_symbol or device.type for device in physical if not device.native_driver}
            self._library = HostLibrary(program, sorted(built_in | {"cpu"}))
            made.callback(self._library.close)
            if program.uses:
                use_threads(program.uses, threads)
            self._context = abi.Context(
                device_count=count,
                devices=ctypes.addressof(self.records),
                constant_count=len(program.constants),
                constants=self._constants(program),
                traffic=ctypes.addressof(self.traffic),
                arenas=ctypes.addressof(self._arena_records),
                run_tasks=shared["devscope_pool_run"],
                wait_apart=shared["devscope_wait_apart"],
                threads=threads,
                returned=returned,
                state_count=states,
                states=self._array(abi.State, [], max(states, 1)),
            )
            self._address = ctypes.addressof(self._context)
            for arena in program.arenas:
                record = self._arena_records[arena.slot]
                record.places = self._array(abi.Place, [abi.Place(*place) for place in arena.places])
                record.place_count = len(arena.places)
                record.separate = int(physical[arena.slot].base_alignment > arena.alignment)
            for spec, device, record in zip(self.specs, physical, self.records, strict=True):
                self._open(spec, device, record, made)
            self._callers = {
                name: EntryCaller(name, entry, self._library, self._address)
                for name, entry in program.entries.items()
            }
            self._made = made.pop_all()

    def run(self, name: str, values: Sequence[Any], way: int = ARGUMENTS) -> tuple[Any, ...]:
        """Calls an entry in a ``way``, see :attr:`EntryCaller.calls`; NotImplemented if that says so.

        Raises what :meth:`Executable.run` raises.
        """
        caller = self._callers[name]
        if name not in self._prepared:
            self._prepare_arenas(name)
        try:
            results = caller.calls[way](*values)
        except ValueError as error:
            if (problem := caller.problem(values, error)) is None:  # the handler of a signal raised it
                raise
            raise problem from None
        if results is None:
            raise caller.problem(values) or self._error()
        self.abandoned = False
        return results

    def _error(self) -> DevscopeError:
        """The error of a call that failed; raises that of a call that was left."""
        error, self._context.error = abi.Error.from_buffer_copy(self._context.error), abi.Error()
        if error.origin == abi.Origin.RUNTIME and error.code in _LEFT:
            self.abandoned = True
            leave(self._context)
        found = describe_error(error, self.specs, self._physical)
        if self._uses_backends:
            found.__cause__ = cause = raised_error()
            if cause is not None and not isinstance(cause, Exception):
                raise cause  # KeyboardInterrupt and SystemExit are for the caller
        return found

    def keep_states(self) -> None:
        """What the last call left on devices as state, the next one finds."""
        self._library.keep_states(self._address)

    def end(self) -> None:
        """Makes the call that runs, in another thread, end soon, and those that follow."""
        self._context.ended = 1

    def reset_counters(self) -> None:
        """Sets all counters to zero."""
        ctypes.memset(self.traffic, 0, ctypes.sizeof(self.traffic))
        for device in self.records:
            device.counters = abi.Counters()

    def close(self) -> None:
        """Waits for the devices and releases everything, last things first."""
        self._library.close_context(self._address)
        self._made.close()

    def _array(self, element: Any, items: Sequence[Any], room: int = 0) -> int:
        """Address of an array that lives as long as the instance; zeros follow the items up to `room`."""
        array = (element * max(len(items), room))(*items)
        self._keep.append(array)
        return ctypes.addressof(array)

    def _prepare_arenas(self, name: str) -> None:
        """Before the first call of an entry: makes the arenas that it needs, or lets them grow.

        Later calls find their buffers where they were: they ask neither the C library nor a driver for memory.
        Raises :class:`DeviceError` when host memory runs out.
        """
        for arena in self._arenas:
            needed = arena.needed.get(name, 0)
            if needed > self._arena_records[arena.slot].bytes:
                memory = None if arena.slot else self._host_arena(arena, needed)
                self._library.set_arena(self._address, arena.slot, needed, memory)
        self._prepared.add(name)

    def _host_arena(self, arena: ArenaSpec, size: int) -> int:
        try:
            self._host_memory = np.empty(size + arena.alignment, np.uint8)
        except (MemoryError, ValueError):
            raise DeviceError(
                f"cpu:0 (host): allocating {format_bytes(size)} failed: out of host memory"
            ) from None
        return -(-self._host_memory.ctypes.data // arena.alignment) * arena.alignment

    def _constants(self, program: Program) -> int:
        memories = [memory_of(data) for data in program.constant_data]
        self._keep.append(memories)
        return self._array(abi.Constant, [(memory.ctypes.data, memory.nbytes) for memory in memories])

    def _open(self, spec: DeviceSpec, device: Device, record: Any, made: contextlib.ExitStack) -> None:
        record.driver = device.native_driver or self._library.drivers[device.native_symbol or device.type]
        entries = HOST_FREE_LIST_ENTRIES if device.type == "cpu" else FREE_LIST_ENTRIES
        record.free_list.capacity, record.free_list.entries = entries, self._array(abi.FreeBuffer, [], entries)
        record.free_list.limit = device.memory_bytes // FREE_LIST_SHARE
        record.constants = self._array(ctypes.c_int64, [], self._context.constant_count)
        record.most_work_items = device.max_workgroup_size
        record.most_local = device.local_memory_bytes
        device.open(record, made)
        programs = [self._build(device, binary) for binary in spec.binaries] if spec.kernels else []
        kernels = [self._kernel(kernel, programs[kernel.binary], made) for kernel in spec.kernels]
        record.kernels = self._array(abi.Kernel, kernels)
        record.kernel_count = len(kernels)

    def _kernel(self, spec: KernelSpec, program: DeviceProgram, made: contextlib.ExitStack) -> Any:
        sizes = spec.arg_sizes
        handle = program.create_kernel(spec.name, len(sizes))
        made.callback(program.release_kernel, handle)
        return abi.Kernel(handle, len(sizes), self._array(ctypes.c_int64, sizes), sum(size < 0 for size in sizes))
