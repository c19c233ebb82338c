"""What devscope knows of each type of device.

The driver for devices of type ``T`` is the object ``DRIVER`` of the module ``T`` of this package, together with
the function table ``devscope_driver_T`` of the native runtime. There is nothing else to register. Modules with an
underscore in their names are parts of drivers.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Generic, TypeVar

from devscope.errors import DeviceError
from devscope.runtime.format_bytes import format_bytes


@dataclass(repr=False)
class DeviceInfo:
    """What ``devscope devices`` prints about one physical device.

    ``memory_bytes``: 0 when unknown. ``max_workgroup_size``: 0 where there are no workgroups.
    ``spirv_versions``: accepted versions of SPIR-V, empty for devices that do not take it.
    """

    name: str
    type: str
    description: str
    platform: str
    driver: str
    memory_bytes: int
    max_workgroup_size: int
    compute_units: int
    fp64: bool
    fp16: bool
    spirv_versions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Device {self.describe()}>"

    def describe(self) -> str:
        """One line for people."""
        facts = [f"{self.compute_units} compute units", format_bytes(self.memory_bytes), self.platform]
        if self.driver:
            facts.append(f"driver {self.driver}")
        if self.max_workgroup_size:
            facts.append(f"workgroups up to {self.max_workgroup_size}")
        floats = [name for name, there in (("fp64", self.fp64), ("fp16", self.fp16)) if there]
        if floats:
            facts.append(" ".join(floats))
        if self.spirv_versions:
            facts.append(f"SPIR-V up to {self.spirv_versions[-1]}")
        return f"{self.name}: {self.description} ({', '.join(facts)})"

    def to_json(self) -> dict[str, Any]:
        """All facts, for ``json.dumps``."""
        return {field.name: getattr(self, field.name) for field in fields(DeviceInfo)}


class DeviceProgram(ABC):
    """Kernels that a driver built for one device."""

    @abstractmethod
    def create_kernel(self, name: str, arguments: int) -> int:
        """The driver's handle of a kernel with this number of arguments; release it with :meth:`release_kernel`.

        Raises :class:`DeviceError` when there is no such kernel.
        """

    @abstractmethod
    def release_kernel(self, kernel: int) -> None:
        """Releases what :meth:`create_kernel` gave."""

    @abstractmethod
    def release(self) -> None:
        """Releases the program; its kernels are released."""


@dataclass(eq=False, repr=False)
class Device(DeviceInfo, ABC):
    """A physical device that programs can run on.

    ``base_alignment``: of parts of buffers, in bytes. ``identity``: tells devices and driver versions apart whose
    binaries are not interchangeable.
    """

    local_memory_bytes: int
    base_alignment: int
    identity: str
    native_driver = 0
    """Address of its driver's table of functions, if that is not in the native runtime."""
    native_symbol = ""
    """Which of the native runtime's drivers is its: if not that of its type."""

    @property
    def label(self) -> str:
        """The device in messages."""
        return f"{self.name} ({self.description})"

    @contextmanager
    def errors(self, prefix: str) -> Generator[None]:
        """Puts the device and an action before the message of a :class:`DeviceError` raised in its body."""
        try:
            yield
        except DeviceError as error:
            raise DeviceError(f"{self.label}: {prefix}: {error.message}", notes=error.notes) from None

    @property
    def cores(self) -> int:
        """How many of the host's cores are the device's, as long as a program uses it; 0: no certain ones."""
        return 0

    @property
    def target_options(self) -> Mapping[str, str | int]:
        """Options that code for this device is compiled with, where the program does not say others."""
        return {}

    @abstractmethod
    def shares_memory_with(self, other: Device) -> bool:
        """Whether this device uses the other one's memory as its own."""

    @abstractmethod
    def error_name(self, status: int) -> str:
        """A status of the native driver as words."""

    @abstractmethod
    def build(self, binary: bytes, cached: bytes | None) -> tuple[DeviceProgram, bytes | None]:
        """Builds a binary of the compiler, or takes what the driver made of it earlier.

        Gives the program and the driver's own binary to keep for next time (None when ``cached`` was used, or when
        the driver has none). A ``cached`` binary that the driver does not want is ignored. Raises
        :class:`DeviceError` with the build log.
        """

    def build_apart(self, binary: bytes) -> bytes | None:
        """As `build`, in another process, for a binary that this process did not compile: what the driver made.

        None where it gives nothing to keep. Raises :class:`DeviceError`, also when the driver ends that process.
        """
        raise DeviceError(f"{self.label} takes no binaries of strangers")

    @abstractmethod
    def open(self, record: Any, made: ExitStack) -> None:
        """Fills in ``domain`` and ``state`` of the native ``record`` of a virtual device on this one.

        What is ``made`` for it is released after the native runtime has closed the device. Raises
        :class:`DeviceError`.
        """


class Driver(ABC):
    """The devices of one type."""

    type: str
    advice: str | None = None
    """How one gets such a device, for the message that there is none."""

    @abstractmethod
    def devices(self) -> list[Device]:
        """The devices of this machine, in the same order in every process. Raises :class:`DeviceError`."""

    def problems(self) -> list[str]:
        """What was found but cannot be used, one line each."""
        return []

    def find(self, name: str) -> Device | None:
        """The device, or part of a device, of this name. Raises :class:`DeviceError`."""
        return next((device for device in self.devices() if device.name == name), None)


def forked() -> DeviceError:
    """Drivers have threads, which a forked process does not have: it would wait for them for ever."""
    return DeviceError(
        "this process was forked from one that had opened devices, which cannot be used here",
        notes=["start it anew (multiprocessing: start method 'spawn'), or fork before devices are looked for"],
    )


Found = TypeVar("Found")


class Search(Generic[Found]):
    """Looks for something once per process: two lists would mean two contexts for one device.

    ``opens``: whether what was found means that the driver has threads.
    """

    def __init__(self, look: Callable[[], Found], opens: Callable[[Found], bool]) -> None:
        self._look, self._opens = look, opens
        self._lock = threading.Lock()
        self.forget()
        os.register_at_fork(after_in_child=self._after_fork)

    def __call__(self) -> Found:
        """What was found. Raises :class:`DeviceError` in a process that was forked after that."""
        if self._forked:
            raise forked()
        with self._lock:
            if not self._found:
                self._found.append(self._look())
            return self._found[0]

    def forget(self) -> None:
        """As if nothing had been looked for: for tests."""
        self._found: list[Found] = []
        self._forked = False

    def _after_fork(self) -> None:
        self._forked = self._forked or self._lock.locked() or any(map(self._opens, self._found))


@cache
def device_types() -> tuple[str, ...]:
    """The types of devices for which there is a driver; the host's comes first."""
    found = {module.name for module in pkgutil.iter_modules(__path__) if "_" not in module.name}
    return ("cpu", *sorted(found - {"cpu"}))


def driver(device_type: str) -> Driver | None:
    """The driver for a type of devices, built-in or a backend's; None if there is none. Loads no library."""
    if device_type not in device_types():
        return importlib.import_module(f"{__name__}.plugin_devices").find_driver(device_type)
    return importlib.import_module(f"{__name__}.{device_type}").DRIVER


def drivers() -> list[Driver]:
    """All drivers."""
    return [found for type_ in device_types() if (found := driver(type_)) is not None]
