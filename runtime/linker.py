"""Loads the host object of a program into this process."""

import contextlib
import ctypes
import itertools
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from devscope.errors import ExecutableFormatError
from devscope.runtime.native import runtime_object
from devscope.runtime.program import Program

_FUNCTIONS = ("devscope_call", "devscope_close", "devscope_set_arena")

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
        entries = [entry.symbol for entry in program.entries.values()]
        drivers = {type_: f"devscope_driver_{type_}" for type_ in device_types}
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(program.host_object)
        builder.add_object_img(runtime_object())
        builder.add_current_process()
        for symbol in (*_FUNCTIONS, *drivers.values(), *entries):
            builder.export_symbol(symbol)
        # LLVM would write what it does not find to stderr; the exception says it better.
        self._jit: Any = llvm.create_lljit_compiler(suppress_errors=True)
        try:
            self._tracker: Any = builder.link(self._jit, f"devscope{next(_serial)}")
        except RuntimeError as error:
            self._jit.close()
            raise _link_error(program, entries, str(error)) from None
        self.drivers = {type_: self[symbol] for type_, symbol in drivers.items()}
        """Address of the native driver for each type of devices."""
        call, close, set_arena = (self[name] for name in _FUNCTIONS)
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        # Other Python threads run while one of these does.
        self.call = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer)(call)
        self.close_context = ctypes.CFUNCTYPE(None, pointer)(close)
        self.set_arena = ctypes.CFUNCTYPE(None, pointer, i64, i64, pointer)(set_arena)

    def __getitem__(self, symbol: str) -> int:
        """Address of an entry."""
        return self._tracker[symbol]

    def close(self) -> None:
        """Unloads the code. Nothing of it may be running or be called afterwards."""
        self._tracker.close()
        self._jit.close()


@cache
def _setup() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Math and float conversions that compiled code calls must be visible to the linker.
    for library in ("libm.so.6", "libgcc_s.so.1"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)


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


def _link_error(program: Program, entries: Sequence[str], reason: str) -> ExecutableFormatError:
    process = ctypes.CDLL(None)
    runtime = symbols_of(runtime_object())
    missing = [
        name
        for name, is_defined in symbols_of(program.host_object).items()
        if not is_defined and not runtime.get(name) and not hasattr(process, name)
    ]
    if missing:
        return ExecutableFormatError(
            f"the host code calls functions that this process does not have: {', '.join(missing)}",
            notes=["the library that defines them must be loaded before the program"],
        )
    absent = [name for name in entries if name.encode() not in program.host_object]
    if absent:
        return ExecutableFormatError(f"the host code does not define: {', '.join(absent)}")
    return ExecutableFormatError(f"the host code could not be loaded: {reason}")


_SHT_SYMTAB = 2
_SHN_UNDEF = 0
_STB_LOCAL = 0
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def symbols_of(data: bytes) -> dict[str, bool]:
    """The global symbols of a 64-bit little-endian relocatable ELF object, and whether it defines them.

    None of anything else; of a damaged object, some.
    """
    found: dict[str, bool] = {}
    if data[:6] != b"\x7fELF\x02\x01":
        return found
    with contextlib.suppress(struct.error, ValueError, IndexError):
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
        for _, kind, _, _, offset, length, link, _, _, _ in sections:
            if kind != _SHT_SYMTAB:
                continue
            for at in range(offset, offset + length, _SYMBOL.size):
                name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
                if name and info >> 4 != _STB_LOCAL:
                    start = sections[link][4] + name
                    found[data[start : data.index(b"\0", start)].decode()] = section != _SHN_UNDEF
    return found
