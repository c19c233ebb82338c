"""Loads the host object of a program into this process."""

import contextlib
import ctypes
import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

from devscope.errors import ExecutableFormatError
from devscope.runtime.interpreter import interpreter
from devscope.runtime.native import runtime_object
from devscope.runtime.object_file import check_objects, runtime_symbols
from devscope.runtime.plugins import backend_functions
from devscope.runtime.program import Program

_FUNCTIONS = ("devscope_call", "devscope_close", "devscope_set_arena", "devscope_keep_states")

# Names of loaded libraries: LLVM does not allow one to be used twice.
_serial = itertools.count()


class HostLibrary:
    """The host code of a program with the native runtime, loaded; its memory is freed by :meth:`close`.

    Every instance has its own copy of the code and of its globals. ``device_types``: whose drivers the program
    needs. Raises :class:`ExecutableFormatError` when the object is made for another machine, is damaged, or needs
    a function that nothing provides.
    """

    def __init__(self, program: Program, device_types: Sequence[str]) -> None:
        # Imported here: a program can be described and saved without LLVM.
        import llvmlite.binding as llvm

        _setup()
        _check_machine(program, llvm)
        functions = backend_functions(program.uses)
        own, others = check_objects(program)
        linked = {name for other in others for name in other.defined}
        if program.objects and (double := linked & own.defined):
            raise ExecutableFormatError(f"objects of backends define what the host code does: {sorted(double)}")
        imported = frozenset(own.imported.union(*(other.imported for other in others)) - linked - functions.keys())
        entries = [entry.symbol for entry in program.entries.values()]
        if absent := [symbol for symbol in entries if symbol not in own.defined]:
            raise ExecutableFormatError(f"the host code does not define: {', '.join(absent)}")
        drivers = {type_: f"devscope_driver_{type_}" for type_ in device_types}
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(program.host_object)
        builder.add_object_img(runtime_object())
        # Not all symbols of this process: a program reaches what `check_object` allows, the runtime what it needs.
        for data in program.objects:
            builder.add_object_img(data)
        for symbol, address in {**_library_functions(imported), **functions}.items():
            builder.import_symbol(symbol, address)
        closing = [CLOSE_BACKENDS] if CLOSE_BACKENDS in own.defined else []
        for symbol in (*_FUNCTIONS, *drivers.values(), *entries, *closing):
            builder.export_symbol(symbol)
        # LLVM would write what it does not find to stderr; the exception says it better.
        self._jit: Any = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        try:
            self._tracker: Any = builder.link(self._jit, f"devscope{next(_serial)}")
        except RuntimeError as error:
            self._jit.close()
            raise ExecutableFormatError(f"the host code could not be loaded: {error}") from None
        self.drivers = {type_: self[symbol] for type_, symbol in drivers.items()}
        """Address of the native driver for each type of devices."""
        self.call, close, set_arena, keep_states = (self[name] for name in _FUNCTIONS)
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        # Other Python threads run while one of these does.
        self.close_context = ctypes.CFUNCTYPE(None, pointer)(close)
        self._closing = [ctypes.CFUNCTYPE(None)(self[name]) for name in closing]
        self.keep_states = ctypes.CFUNCTYPE(None, pointer)(keep_states)
        self.set_arena = ctypes.CFUNCTYPE(None, pointer, i64, i64, pointer)(set_arena)

    def __getitem__(self, symbol: str) -> int:
        """Address of an entry."""
        return self._tracker[symbol]

    def close(self) -> None:
        """Unloads the code. Nothing of it may be running or be called afterwards."""
        for release in self._closing:
            release()
        self._tracker.close()
        self._jit.close()


def shared_runtime() -> dict[str, int]:
    """The addresses of functions of a copy of the runtime that all programs of the process share.

    It has the threads, and what gives the memory of results back. It is never unloaded, not even as the
    interpreter ends: threads may be between two tasks then, and arrays be left. Raises :class:`DevscopeError`.
    """
    if not _shared:
        import llvmlite.binding as llvm

        _setup()
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(runtime_object())
        for symbol, address in _library_functions(frozenset()).items():
            builder.import_symbol(symbol, address)
        for symbol in _SHARED:
            builder.export_symbol(symbol)
        jit: Any = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        tracker: Any = builder.link(jit, _SHARED[0])
        found = {symbol: tracker[symbol] for symbol in _SHARED}
        for kept in (tracker, jit):
            kept.detach()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found["devscope_set_interpreter"])(ctypes.addressof(interpreter()))
        _shared.append(found)  # another thread may have been faster: the first one is used
    return _shared[0]


CLOSE_BACKENDS = "devscope_close_backends"
"""A function that programs may have: what claimed functions made is released."""

_SHARED = (
    "devscope_pool_run",
    "devscope_wait_apart",
    "devscope_python_call",
    "devscope_python_call_out",
    "devscope_python_call_checked",
    "devscope_python_move",
    "devscope_open_returned",
    "devscope_close_returned",
    "devscope_set_interpreter",
)
_shared: list[dict[str, int]] = []


@cache
def _setup() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _libraries() -> list[ctypes.CDLL]:
    """Where functions come from that programs and the runtime call; the process has the C library's."""
    found = [ctypes.CDLL(None)]
    for library in ("libm.so.6", "libgcc_s.so.1"):
        with contextlib.suppress(OSError):
            found.append(ctypes.CDLL(library))
    return found


@cache
def _library_functions(imported: frozenset[str]) -> dict[str, int]:
    """Addresses of the functions that a program imports, and of those that the runtime does.

    Raises :class:`ExecutableFormatError` for those that no library has.
    """
    defined = runtime_symbols()
    wanted = {name for name in imported if not defined.get(name)} | {name for name in defined if not defined[name]}
    found: dict[str, int] = {}
    for name in sorted(wanted):
        for library in _libraries():
            if hasattr(library, name):
                found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                break
    if missing := sorted(wanted - found.keys() - {"_GLOBAL_OFFSET_TABLE_"}):
        raise ExecutableFormatError(f"this machine's C library lacks functions that the program calls: {missing}")
    return found


def _check_machine(program: Program, llvm: Any) -> None:
    here = llvm.get_process_triple()
    if _machine(program.host_triple) != _machine(here):
        raise ExecutableFormatError(
            f"the program was compiled for '{program.host_triple}', this machine is '{here}'",
            notes=["compile it again on this machine"],
        )
    features: dict[str, bool] = llvm.get_host_cpu_features()
    wanted = [name[1:] for name in program.host_features.split(",") if name.startswith("+")]
    # Names that LLVM does not list for the CPU are tuning hints, not instructions.
    lacking = [name for name in wanted if not features.get(name, True)]
    if lacking:
        raise ExecutableFormatError(
            f"the program was compiled for a CPU ({program.host_cpu or 'unnamed'}) with features that this "
            f"one ({llvm.get_host_cpu_name()}) lacks: {', '.join(lacking)}",
            notes=["compile it again on this machine, or for a more general CPU"],
        )


def _machine(triple: str) -> tuple[str, bool]:
    """What must be equal for host code to run: architecture and operating system (vendors differ freely)."""
    return triple.partition("-")[0], "linux" in triple
