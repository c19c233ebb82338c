"""Devices of backends: what a vendor's table of C functions (``runtime/native/plugin.h``) is for."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, cached_property
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, DeviceProgram, Driver
from devscope.runtime.plugins import Runtime, find_runtime

VERSION = 1
_NO_PARTS = 1 << 62
"""The alignment of parts of buffers where there are none."""

_P, _I64, _I32, _OUT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS = {
    "count": ctypes.CFUNCTYPE(_I64),
    "describe": ctypes.CFUNCTYPE(_P, _I64),
    "memory_bytes": ctypes.CFUNCTYPE(_I64, _I64),
    "open": ctypes.CFUNCTYPE(_I32, _I64, _OUT),
    "close": ctypes.CFUNCTYPE(None, _P),
    "alloc": ctypes.CFUNCTYPE(_I32, _P, _I64, _OUT),
    "free": ctypes.CFUNCTYPE(_I32, _P, _P),
    "copy_in": ctypes.CFUNCTYPE(_I32, _P, _P, _I64, _P, _I64),
    "copy_out": ctypes.CFUNCTYPE(_I32, _P, _P, _I64, _P, _I64),
    "copy_on": ctypes.CFUNCTYPE(_I32, _P, _P, _I64, _P, _I64, _I64),
    "build": ctypes.CFUNCTYPE(_I32, _P, _P, _I64, _OUT),
    "release": ctypes.CFUNCTYPE(None, _P, _P),
    "kernel": ctypes.CFUNCTYPE(_I32, _P, _P, ctypes.c_char_p, _OUT),
    "launch": ctypes.CFUNCTYPE(_I32, _P, _P, ctypes.POINTER(_I64), _I64),
    "error": ctypes.CFUNCTYPE(_P, _I32),
}
"""In the order of the table."""


class DeviceTable(ctypes.Structure):
    """``DevscopeDeviceTable``."""

    _fields_ = (("size", _I64), ("version", _I64), *_FUNCTIONS.items())


class _State(ctypes.Structure):
    """``Plugin`` of plugin.c."""

    _fields_ = (("table", _P), ("device", _P))


class _Program(DeviceProgram):
    def __init__(self, device: PluginDevice, handle: int) -> None:
        self._device, self._handle = device, handle

    def create_kernel(self, name: str, arguments: int) -> int:
        kernel = ctypes.c_void_p()
        status = self._device.table.kernel(self._device.handle, self._handle, name.encode(), ctypes.byref(kernel))
        self._device.check(status, f"kernel '{name}'")
        return kernel.value or 0

    def release_kernel(self, kernel: int) -> None:
        """A kernel is the program's."""

    def release(self) -> None:
        self._device.table.release(self._device.handle, self._handle)


class PluginDevice(Device):
    """Opened when a program first uses it, and never closed before the process ends."""

    native_symbol = "plugin"

    def __init__(self, runtime: Runtime, table: DeviceTable, number: int) -> None:
        self.table, self._number = table, number
        self.name, self.type = f"{runtime.name}:{number}", runtime.name
        self.description = _text(table.describe(number)) or runtime.name
        self.platform, self.driver = runtime.name, f"table {table.version}"
        self.memory_bytes = table.memory_bytes(number)
        self.compute_units = 1
        self.max_workgroup_size = 1
        self.local_memory_bytes = 0
        self.base_alignment = _NO_PARTS
        self.fp64 = self.fp16 = True
        self.spirv_versions = ()
        self.identity = f"{runtime.name} {self.description}"

    @cached_property
    def handle(self) -> int:
        """The vendor's. Raises :class:`DeviceError` if it cannot be opened."""
        opened = ctypes.c_void_p()
        self.check(self.table.open(self._number, ctypes.byref(opened)), "opening it")
        return opened.value or 0

    def check(self, status: int, what: str) -> None:
        if status:
            raise DeviceError(f"{self.label}: {what} failed: {self.error_name(status)}")

    def shares_memory_with(self, other: Device) -> bool:
        return other is self

    def error_name(self, status: int) -> str:
        if status == -1:
            return "out of host memory"
        return _text(self.table.error(status)) or f"error {status}"

    def build(self, binary: bytes, cached: bytes | None) -> tuple[DeviceProgram, bytes | None]:
        program = ctypes.c_void_p()
        status = self.table.build(self.handle, binary, len(binary), ctypes.byref(program))
        self.check(status, "building a program")
        return _Program(self, program.value or 0), None

    def build_apart(self, binary: bytes) -> bytes | None:
        """What a stranger's binary does is up to the vendor's driver."""
        return None

    def open(self, record: Any, made: ExitStack) -> None:
        state = _State(ctypes.addressof(self.table), self.handle)
        made.callback(lambda: state)
        record.state, record.domain = ctypes.addressof(state), self.handle


def _text(address: int | None) -> str:
    return ctypes.string_at(address).decode(errors="replace") if address else ""


class PluginDriver(Driver):
    def __init__(self, runtime: Runtime) -> None:
        self.type = runtime.name
        self.advice = runtime.advice or None
        self._runtime = runtime

    @cached_property
    def _devices(self) -> list[Device]:
        table = read_table(self._runtime)
        count = 0 if table is None else table.count()
        return [PluginDevice(self._runtime, table, number) for number in range(count) if table is not None]

    def devices(self) -> list[Device]:
        return list(self._devices)


def read_table(runtime: Runtime) -> DeviceTable | None:
    """A vendor's table; None if the runtime has none. Raises :class:`DeviceError` for one of another version."""
    try:
        address = runtime.device_table()
    except Exception as error:
        raise DeviceError(
            f"the driver of '{runtime.name}' cannot be loaded: {error}",
            notes=[runtime.advice] if runtime.advice else [],
        ) from error
    if not address:
        return None
    size, version = (ctypes.c_int64 * 2).from_address(address)
    if version != VERSION or size < ctypes.sizeof(DeviceTable):
        raise DeviceError(
            f"the driver of '{runtime.name}' has a device table of version {version} and {size} bytes; this "
            f"devscope wants version {VERSION} and {ctypes.sizeof(DeviceTable)} bytes or more"
        )
    table = DeviceTable.from_address(address)
    for name in _FUNCTIONS:
        if not ctypes.cast(getattr(table, name), ctypes.c_void_p).value:
            raise DeviceError(f"the device table of '{runtime.name}' lacks '{name}'")
    return table


def table_of(functions: Mapping[str, Callable[..., Any]]) -> DeviceTable:
    """A table whose functions are Python's, by the names in plugin.h: for devices that are simulated.

    Addresses and numbers come as integers (0 for null), ``out`` parameters as what to assign to: ``out[0] = 1``;
    texts are given as bytes that live as long as the process. An exception is status 1.
    """
    table = DeviceTable(size=ctypes.sizeof(DeviceTable), version=VERSION)
    for name, type_ in _FUNCTIONS.items():
        setattr(table, name, type_(_guarded(name, functions[name])))
    _kept.append((table, functions))
    return table


def functions_of(table: DeviceTable) -> dict[str, Callable[..., Any]]:
    """Those of a table, by name, as `table_of` takes them."""
    return {name: getattr(table, name) for name in _FUNCTIONS}


_kept: list[Any] = []
"""Tables that programs may have the address of."""


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            given = function(*(0 if argument is None else argument for argument in arguments))
        except Exception:
            traceback.print_exc()
            return 1
        if isinstance(given, bytes):
            _texts.setdefault(given, ctypes.create_string_buffer(given))
            return ctypes.addressof(_texts[given])
        return given if given is not None or name in ("close", "release") else 0

    return call


_texts: dict[bytes, Any] = {}


@cache
def driver_of(runtime: Runtime) -> PluginDriver:
    return PluginDriver(runtime)


def find_driver(device_type: str) -> Driver | None:
    """The driver of the devices that a backend of this name brings; None if it brings none."""
    runtime = find_runtime(device_type)
    return (
        driver_of(runtime)
        if runtime is not None and type(runtime).device_table is not Runtime.device_table
        else None
    )
