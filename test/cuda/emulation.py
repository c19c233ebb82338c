"""``cuda:0`` on machines without one: kernels run on the host, see ``emulator.c`` and ``kernel_code.py``."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from kernel_code import ACCESSES, FUNCTIONS, NotEmulatedError, to_host

from devscope.errors import DeviceError, LoweringError
from devscope.lowering.codegen import device_worker
from devscope.lowering.codegen.device_emitter import Machine, shared_emitter
from devscope.lowering.codegen.instruction_sets import host_machine
from devscope.lowering.gpu import to_llvm
from devscope.runtime.cache import DIRECTORY_VARIABLE
from devscope.runtime.drivers import Device, DeviceProgram, cuda
from devscope.runtime.native import abi, compile_native, runtime_object
from devscope.source import source_path

Shared = abi.struct("Shared", "memory bytes")
Code = abi.struct("Code", "name body most_threads shared_count shared dynamic")


@cache
def emulator() -> ctypes.CDLL | None:
    """The emulator; None where no C compiler is."""
    if not compile_native.has_compiler():
        return None
    compiler = os.environ.get("CC", "cc")
    options = ["-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "emulator.so"
        source = Path(__file__).with_name("emulator.c")
        command = [compiler, *options, "-I", str(compile_native.FOLDER), str(source), "-lm", "-o", str(library)]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.emulator_report.restype = ctypes.c_char_p
    loaded.emulator_alloc.restype = ctypes.c_void_p
    loaded.emulator_alloc.argtypes = [ctypes.c_size_t]
    loaded.emulator_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return loaded


def set_order(number: int) -> None:
    """The order of threads and blocks in the launches to come: 0 to 5, and others at random."""
    loaded = emulator()
    assert loaded is not None
    ctypes.c_int64.in_dll(loaded, "emulator_order").value = number


class EmulatingEmitter:
    """In place of PTX, the LLVM IR that it would be made of; it looks like PTX to who looks it over."""

    def emit(self, text: str, machine: Machine) -> bytes:
        if machine.name != "PTX":
            return shared_emitter().emit(text, machine)
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        try:
            _, module = device_worker.optimise(llvm, vars(machine), text)
        except RuntimeError as error:
            raise LoweringError(f"LLVM refused the kernels: {error}") from None
        found = [function.name for function in module.functions if "ptx_kernel" in str(function)[:4096]]
        head = f".version {machine.features[-2]}.{machine.features[-1]} .target {machine.cpu} .address_size 64"
        return "\n".join([head, *(f"; .entry {name}(" for name in found), str(module)]).encode()


class EmulatedDevice(Device):
    """``cuda:0``."""

    def __init__(self, number: int) -> None:
        self.name, self.type = f"cuda:{number}", "cuda"
        self.description, self.platform, self.driver = "emulation", "emulation", ""
        self.memory_bytes = 1 << 30
        self.compute_units = 1
        self.max_workgroup_size, self.local_memory_bytes = 1024, 227 << 10
        self.base_alignment = 1 << 30  # no part of a buffer is one: each has borders of its own
        self.fp64 = self.fp16 = True
        self.spirv_versions = ()
        self.identity = "emulation"
        loaded = emulator()
        assert loaded is not None
        self.native_driver = ctypes.addressof(ctypes.c_char.in_dll(loaded, "emulator_driver"))

    def shares_memory_with(self, other: Device) -> bool:
        return other is self

    def error_name(self, status: int) -> str:
        loaded = emulator()
        assert loaded is not None
        return "out of memory" if status == 2 else loaded.emulator_report().decode()

    def build(self, binary: bytes, cached: bytes | None) -> tuple[DeviceProgram, bytes | None]:
        return EmulatedProgram(binary.decode()), None

    def build_apart(self, binary: bytes) -> bytes | None:
        return None

    def open(self, record: Any, made: ExitStack) -> None:
        record.domain = 1


class EmulatedProgram(DeviceProgram):
    """Kernels as code of the host."""

    def __init__(self, text: str) -> None:
        loaded = emulator()
        assert loaded is not None
        self.emulator = loaded
        text = text[text.index("; ModuleID") :]
        try:
            self._code = to_host(text)
        except NotEmulatedError as error:
            raise DeviceError(f"not emulated: {error}") from None
        self._keep: list[Any] = []
        self._memory: dict[str, tuple[int, int]] = {}
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(_host_object(self._code.text))
        builder.add_object_img(runtime_object())
        for name, size in self._code.shared.items():
            room = max(size, 256 << 10 if name in self._code.dynamic else 1)
            address = loaded.emulator_alloc(room)
            assert address
            self._memory[name] = address, room
            builder.import_symbol(name, address)
        for symbol in (*FUNCTIONS, *ACCESSES):
            builder.import_symbol(symbol, ctypes.cast(loaded[symbol], ctypes.c_void_p).value)
        for symbol, address in _library_functions():
            builder.import_symbol(symbol, address)
        for name in self._code.threads:
            builder.export_symbol(f"{name}.emulated")
        self._jit: Any = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        self._tracker: Any = builder.link(self._jit, f"emulated{id(self)}")

    def create_kernel(self, name: str, arguments: int) -> int:
        if name not in self._code.threads:
            raise DeviceError(f"there is no kernel '{name}'")
        used = [
            (at, room if v in self._code.dynamic else self._code.shared[v])
            for v, (at, room) in self._memory.items()
        ]
        shared = (Shared * max(len(used), 1))(*used)
        dynamic = 0
        for number, variable in enumerate(self._code.shared):
            if variable in self._code.dynamic:
                dynamic = ctypes.addressof(shared) + number * ctypes.sizeof(Shared)
        text = ctypes.create_string_buffer(name.encode())
        body, threads = self._tracker[f"{name}.emulated"], self._code.threads[name]
        code = Code(ctypes.addressof(text), body, threads, len(used), ctypes.addressof(shared), dynamic)
        self._keep += [shared, text, code]
        return ctypes.addressof(code)

    def release_kernel(self, kernel: int) -> None:
        pass

    def release(self) -> None:
        self._tracker.close()
        self._jit.close()
        for address, room in self._memory.values():
            self.emulator.emulator_free(address, room)


def _host_object(text: str) -> bytes:
    target, *_ = host_machine("", "", 1)
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    return target.emit_object(module)


_LIBRARY = (
    "fma fmaf memcpy memset memmove fmod fmodf round roundf roundeven roundevenf __truncdfhf2 __extendhfsf2 "
    "__truncsfhf2 __udivti3 __umodti3 __divti3 __modti3 __floattisf __floattidf __floatuntisf __floatuntidf "
    "__fixdfti __fixsfti"
)


@cache
def _library_functions() -> list[tuple[str, int]]:
    from devscope.runtime import linker

    libraries = [ctypes.CDLL(None), ctypes.CDLL("libm.so.6"), ctypes.CDLL("libgcc_s.so.1")]
    found = dict(linker._library_functions(frozenset()))  # pyright: ignore[reportPrivateUsage]
    for name in _LIBRARY.split():
        for library in libraries:
            if name not in found and hasattr(library, name):
                found[name] = ctypes.cast(library[name], ctypes.c_void_p).value or 0
    return list(found.items())


def run_kernel(text: str, grid: int, block: tuple[int, int, int], *given: Any, dynamic: int = 0) -> None:
    """Runs the kernel ``k`` of LLVM IR for NVPTX. ``given``: arrays, which it may change, and numbers.

    ``dynamic``: bytes of shared memory. Raises DeviceError with the emulator's report.
    """
    device = EmulatedDevice(0)
    machine = Machine("PTX", "nvptx64-nvidia-cuda", "sm_90", "+ptx78", assembly=True)
    program = EmulatedProgram(EmulatingEmitter().emit(text, machine).decode())
    sizes = [0 if isinstance(value, np.ndarray) else 8 for value in given] + [-(2**63)] * (dynamic > 0)
    buffers: dict[int, Any] = {}
    cells = [0 if isinstance(value, np.ndarray) else int(value) for value in given] + [dynamic] * (dynamic > 0)
    loaded = program.emulator
    for number, value in enumerate(given):
        if isinstance(value, np.ndarray):
            memory = loaded.emulator_alloc(value.nbytes)
            ctypes.memmove(memory, value.ctypes.data, value.nbytes)
            buffers[number] = abi.Buffer(memory=memory, size=value.nbytes, used=value.nbytes)
            cells[number] = ctypes.addressof(buffers[number])
    kernel = abi.Kernel(
        program.create_kernel("k", len(cells)),
        len(cells),
        ctypes.addressof(argument_sizes := (ctypes.c_int64 * len(cells))(*sizes)),
        sum(size < 0 for size in sizes),
    )
    signature = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    launch = signature((ctypes.c_void_p * 6).from_address(device.native_driver)[5])
    size, values = (ctypes.c_int64 * 6)(grid, 1, 1, *block), (ctypes.c_int64 * len(cells))(*cells)
    status = launch(None, *map(ctypes.addressof, (kernel, size, values)))
    for number, buffer in buffers.items():
        ctypes.memmove(given[number].ctypes.data, buffer.memory, buffer.size)
        loaded.emulator_free(buffer.memory, buffer.size)
    program.release()
    del argument_sizes
    if status:
        raise DeviceError(device.error_name(status))


@contextmanager
def emulated_cuda(folder: Path) -> Iterator[list[EmulatedDevice]]:
    """The machine has ``cuda:0`` and ``cuda:1``. ``folder`` is for what is compiled meanwhile."""
    if emulator() is None:
        pytest.skip("this machine has no C compiler")
    devices = [EmulatedDevice(0), EmulatedDevice(1)]
    emitter = EmulatingEmitter()
    patch = pytest.MonkeyPatch()
    patch.setenv(DIRECTORY_VARIABLE, str(folder))
    patch.setattr(to_llvm, "shared_emitter", lambda: emitter)
    patch.setattr(cuda.CudaDriver, "devices", lambda _: devices)
    set_order(0)
    yield devices
    patch.undo()


_SCOPE = re.compile(r'(?<=<)"opencl", (\d)')
_DEVICE = re.compile(r"opencl:(\d)(?:\.\d)?")


def _cuda_for(device: str) -> str:
    return _DEVICE.sub(r"cuda:\1", device)


def on_cuda(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """``devscope.compile`` with ``cuda:N`` in place of ``opencl:N``."""

    def compile_for_cuda(source: Any, **options: Any) -> Any:
        path = source_path(source) if isinstance(source, str | Path) else None
        text = path.read_text(encoding="utf-8") if path else source if isinstance(source, str) else ""
        used = {f"opencl:{number}" for number in _SCOPE.findall(text)}
        if (default := options.get("default", "cpu:0")) not in used:
            options["default"] = _cuda_for(default)
        mapping = dict.fromkeys(used, "cuda:0") | {
            virtual: _cuda_for(physical) for virtual, physical in (options.get("devices") or {}).items()
        }
        return compile_(source, **options | {"devices": mapping})

    return compile_for_cuda


def found_on_cuda(resolve: Callable[..., dict[str, Device]]) -> Callable[..., dict[str, Device]]:
    """`resolve_devices`, for programs that `on_cuda` compiled and a test saved."""

    def resolve_devices(virtual: Mapping[str, str], mapping: Mapping[str, str] | None = None) -> dict[str, Device]:
        own = [name for name, kind in virtual.items() if kind == "cuda"]
        given = mapping or {}
        return resolve(virtual, {**given, **{name: _cuda_for(given.get(name, name)) for name in own}})

    return resolve_devices
