"""Runs compiled programs."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal

from devscope.errors import InputError
from devscope.runtime.cache import DiskCache, open_cache
from devscope.runtime.context import Counters, NativeContext
from devscope.runtime.devices import resolve_devices
from devscope.runtime.entry import EntryCaller
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.linker import HostLibrary
from devscope.runtime.native import ARENAS_SYMBOL, CONTEXT_SYMBOL
from devscope.runtime.program import Entry, Program
from devscope.runtime.shared_memory import check_shared_memory

MAIN = "main"


class Executable:
    """A program made ready to run on devices of this machine.

    ``devices`` says where virtual devices run when not on the physical device of the same name:
    ``{"opencl:1": "opencl:0"}``. ``cache`` keeps what drivers build; ``"default"`` is the user's cache.

    Calls take numpy arrays or DLPack objects and give numpy arrays; results are complete on return. Calls
    from several threads run one after the other. Driver objects are released by :meth:`close`, at the end
    of a ``with`` block, or with the object; arrays that were returned stay valid.

    Raises :class:`DeviceNotFoundError`, :class:`OptionError`, :class:`DeviceError` (a driver refuses the kernels,
    or devices do not share memory that must) or :class:`ExecutableFormatError` (host code for another machine).
    """

    def __init__(
        self,
        program: Program,
        devices: Mapping[str, str] | None = None,
        cache: DiskCache | Literal["default"] | None = "default",
    ) -> None:
        program.check()
        self.program = program
        virtual = {spec.name: spec.compiled_for for spec in program.slots()}
        physical = resolve_devices(virtual, devices)
        self.devices: dict[str, str] = {name: device.name for name, device in physical.items()}
        """The physical device of every virtual device."""
        check_shared_memory(program, physical)
        self._lock = threading.Lock()
        symbols = [CONTEXT_SYMBOL, ARENAS_SYMBOL]
        library = HostLibrary(program, [*symbols, *(entry.symbol for entry in program.entries.values())])
        try:
            self._context = NativeContext(program, physical, open_cache if cache == "default" else lambda: cache)
        except BaseException:
            library.close()
            raise
        ctypes.c_void_p.from_address(library[CONTEXT_SYMBOL]).value = self._context.address
        ctypes.c_void_p.from_address(library[ARENAS_SYMBOL]).value = self._context.arenas.address
        self._callers = {
            name: EntryCaller(name, entry, library[entry.symbol]) for name, entry in program.entries.items()
        }
        self._release = weakref.finalize(self, _release, self._context, library)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        devices: Mapping[str, str] | None = None,
        cache: DiskCache | Literal["default"] | None = "default",
        verify: bool = True,
    ) -> Executable:
        """Loads a ``.dsx`` file. Constants are used from the file, which must not be changed in place.

        ``verify=False`` skips the check sums (they read all constants once). Raises
        :class:`ExecutableFormatError`, and what the constructor raises.
        """
        return cls(read_program(path, verify), devices, cache)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``.dsx`` file, in one step; raises :class:`ExecutableFormatError` when it cannot."""
        save_program(self.program, path)

    @property
    def entries(self) -> dict[str, Entry]:
        """The functions that :meth:`run` can call, with the types of their arguments and results."""
        return self.program.entries

    def __call__(self, *arguments: Any) -> Any:
        """Runs ``main``, or the only entry of the program. See :meth:`run`."""
        if MAIN in self._callers or len(self._callers) != 1:
            return self.run(MAIN, *arguments)
        return self.run(next(iter(self._callers)), *arguments)

    def run(self, name: str, *arguments: Any) -> Any:
        """Calls an entry: an array for one result, a tuple for several, None for none.

        Raises :class:`InputError` for a wrong name, number, dtype or shape; :class:`DeviceError` when a device
        fails, when memory runs out, on the host too, or when a tensor would get a negative size;
        :class:`ExecutionError` when an assertion of the program does not hold. The executable stays usable.
        """
        caller = self._callers.get(name)
        if caller is None:
            legal = ", ".join(f"'{entry}'" for entry in self._callers)
            raise InputError(f"the program has no entry '{name}'", notes=[f"its entries are: {legal}"])
        arrays = caller.check(arguments)
        with self._lock:
            if not self._release.alive:
                raise InputError("the executable was closed", notes=["load or compile the program again"])
            self._context.arenas.prepare(name)
            self._context.take_back_memory()
            if not caller.call(arrays):
                raise self._context.take_error()
            results = caller.take_results(self._context.returned.give)
        if len(results) == 1:
            return results[0]
        return tuple(results) if results else None

    def memory(self) -> dict[str, dict[str, int]]:
        """What the compiler planned for the memory of each virtual device, in bytes: see docs/memory.md."""
        return {name: dict(needed) for name, needed in self.program.report.get("memory", {}).items()}

    def counters(self) -> Counters:
        """Launches, copies and allocations so far."""
        with self._lock:
            return self._context.counters()

    def reset_counters(self) -> None:
        """Sets the counters to zero."""
        with self._lock:
            self._context.reset_counters()

    def close(self) -> None:
        """Waits for the devices and releases everything; calls raise :class:`InputError` from then on."""
        with self._lock:
            self._release()

    def __enter__(self) -> Executable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _release(context: NativeContext, library: HostLibrary) -> None:
    context.close()
    library.close()
