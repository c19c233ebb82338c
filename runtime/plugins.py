"""What programs need of backends when they run: libraries, Python functions, devices.

A package offers a `Runtime` as an entry point of the group ``devscope.runtimes``, under the backend's name. It is
imported when a program is loaded that names it, and needs nothing of the compiler.
"""

from __future__ import annotations

import ctypes
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from devscope.errors import DeviceNotFoundError, DevscopeError, OptionError, raised_as
from devscope.runtime.dtypes import array_dtype

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "devscope.runtimes"

Function = int | Callable[..., object]
"""The address of a C function, or a Python function, see `devscope.backends.PythonCall`."""


def python_symbol(backend: str, name: str) -> str:
    """What programs call a Python function of a backend: no C function, and no other backend's, is called that."""
    return f"python.{backend}.{name}"


class Runtime:
    """Subclass this. ``name``: the backend's. ``advice``: how one gets what is missing: ``pip install X``."""

    name: ClassVar[str]
    advice: ClassVar[str] = ""

    def function(self, name: str) -> Function | None:
        """The function of this name; None if there is none. Raises OSError if a library cannot be opened."""
        return None

    def library(self) -> str:
        """The path of the C library that has all functions; "" if some are Python's. Raises OSError without it.

        What runs without Python, `devscope build --shared`, is linked with it.
        """
        return ""

    def use_threads(self, count: int) -> None:
        """A program is loaded whose calls use so many threads."""

    def device_table(self) -> int:
        """The address of a ``DevscopeDeviceTable`` (runtime/native/plugin.h); 0 without devices of its own."""
        return 0


class LibraryRuntime(Runtime, ABC):
    """Of a backend whose functions are all those of one C library, which `open` finds."""

    environment: ClassVar[Sequence[str]] = ()
    """``NAME=value`` of variables that the library reads as it is opened: set meanwhile, unless the user has set
    them."""

    @abstractmethod
    def open(self) -> ctypes.CDLL:
        """The library; called once. Raises OSError where it cannot be opened."""

    @cached_property
    def opened(self) -> ctypes.CDLL:
        """The library. Raises OSError where it cannot be opened."""
        wanted = dict(setting.split("=", 1) for setting in self.environment)
        added = {name: value for name, value in wanted.items() if name not in os.environ}
        os.environ.update(added)
        try:
            return self.open()
        finally:
            for name in added:
                del os.environ[name]

    def library(self) -> str:
        return self.opened._name

    def function(self, name: str) -> int | None:
        function = getattr(self.opened, name, None)
        return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def package_files(packages: Iterable[str], prefix: str) -> Iterator[Path]:
    """The files of those of the packages that are installed whose names begin with ``prefix``."""
    from importlib.metadata import PackageNotFoundError, distribution  # most programs need no backend

    for package in packages:
        with suppress(PackageNotFoundError):
            files = distribution(package).files or []
            yield from (Path(str(file.locate())) for file in files if file.name.startswith(prefix))


_registered: dict[str, Runtime] = {}


def register_runtime(runtime: Runtime | type[Runtime]) -> None:
    """Make a runtime known that no entry point offers."""
    made = runtime
    if isinstance(runtime, type):
        name = getattr(runtime, "name", runtime.__name__)
        with raised_as(DeviceNotFoundError, f"the runtime of backend '{name}' cannot be made"):
            made = runtime()
    if not isinstance(made, Runtime):
        raise OptionError(f"{made!r} is no devscope.runtime.plugins.Runtime")
    _registered[made.name] = made


@cache
def _offered() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # most programs need no backend

    return {point.name: point for point in entry_points(group=GROUP)}


def runtime_names() -> list[str]:
    """Those that there are; nothing is imported."""
    return sorted({*_registered, *_offered()})


def find_runtime(name: str) -> Runtime | None:
    """The runtime of a backend; None if no package has one. Raises DeviceNotFoundError for a broken one."""
    if name not in _registered and (point := _offered().get(name)) is not None:
        note = f"it is '{point.value}' of {point.dist.name if point.dist else 'a package'}"
        with raised_as(DeviceNotFoundError, f"the runtime of backend '{name}' cannot be loaded", notes=[note]):
            register_runtime(point.load())
    return _registered.get(name)


def backend_functions(uses: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The addresses of the functions of backends that a program calls.

    Raises :class:`DeviceNotFoundError` that names the backend if it, its library or a function is missing.
    """
    found: dict[str, int] = {}
    for backend, names in uses.items():
        runtime = find_runtime(backend)
        if runtime is None:
            raise missing_backend(backend)
        for name in names:
            found[name] = _address(runtime, name)
    return found


def missing_backend(name: str) -> DeviceNotFoundError:
    """The error for a backend that a program needs and that no package offers."""
    return DeviceNotFoundError(
        f"the program needs backend '{name}', which is not installed",
        notes=[f"installed: {', '.join(runtime_names()) or 'none'}"],
    )


def use_threads(uses: Mapping[str, Sequence[str]], count: int) -> None:
    for backend in uses:
        runtime = find_runtime(backend)
        if runtime is not None:
            with raised_as(DeviceNotFoundError, f"the runtime of backend '{backend}' cannot use threads"):
                runtime.use_threads(count)


def _address(runtime: Runtime, symbol: str) -> int:
    notes = [runtime.advice] if runtime.advice else []
    name = symbol.removeprefix(python_symbol(runtime.name, ""))
    try:
        function = runtime.function(name)
    except DevscopeError:
        raise
    except Exception as error:
        raise DeviceNotFoundError(
            f"backend '{runtime.name}': what its programs need is missing: {error}", notes=notes
        ) from error
    if function is None:
        raise DeviceNotFoundError(f"backend '{runtime.name}' has no function '{name}'", notes=notes)
    if name != symbol:
        if not callable(function):
            raise DeviceNotFoundError(
                f"backend '{runtime.name}': '{name}' is {function!r}, no Python function", notes=notes
            )
        known = _trampolines.get((runtime.name, name))
        if known is None or known[0] is not function:
            known = _trampolines[runtime.name, name] = function, _TRAMPOLINE(_Python(function))
        return ctypes.cast(known[1], ctypes.c_void_p).value or 0
    if not isinstance(function, int) or isinstance(function, bool) or function <= 0:
        raise DeviceNotFoundError(
            f"backend '{runtime.name}': '{name}' is {function!r}, not the address of a C function", notes=notes
        )
    return function


# ------------------------------------------------------------------------------------------------ Python functions

_TRAMPOLINE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64))
"""Compiled code calls it without the interpreter's lock, or with it: ctypes takes it."""

_trampolines: dict[tuple[str, str], tuple[Any, Any]] = {}
"""Never dropped: loaded code has their addresses."""

raised = threading.local()
"""``error``: what the last Python function raised that a program of this thread called."""


class _Python:
    """Calls a Python function with arrays of the memory that compiled code gives; 1 if it raised an exception."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __call__(self, types: bytes, cells: Any) -> int:
        try:
            self._function(*_arrays(types.decode(), cells))
        except BaseException as error:
            raised.error = error
            return 1
        return 0


def _arrays(types: str, cells: Any) -> list[Any]:
    """``types``: ``2:f32,:i64,>2:f32``, of each value its rank (none for a number) and dtype; ``>``: a result."""
    arrays: list[Any] = []
    at = 0
    for text in types.split(","):
        rank, _, element = text.removeprefix(">").partition(":")
        dtype = array_dtype(element)
        if not rank:
            arrays.append(np.frombuffer(ctypes.string_at(ctypes.addressof(cells.contents) + 8 * at, 8), dtype)[0])
            at += 1
            continue
        sizes = [cells[at + 1 + axis] for axis in range(int(rank))]
        count = int(np.prod(sizes, dtype=np.int64))
        if count:
            memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(cells[at])
            array = np.ndarray(sizes, dtype, buffer=memoryview(memory))
        else:
            array = np.empty(sizes, dtype)
        if not text.startswith(">"):
            array.flags.writeable = False
        arrays.append(array)
        at += 1 + len(sizes)
    return arrays


def raised_error() -> BaseException | None:
    """What a Python function raised in the last call of this thread; it is forgotten."""
    error = getattr(raised, "error", None)
    raised.error = None
    return error


__all__ = ["LibraryRuntime", "Runtime", "backend_functions", "find_runtime", "register_runtime", "runtime_names"]
