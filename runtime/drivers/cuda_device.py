"""One CUDA device: its context, streams, building programs from PTX."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from ctypes import c_int32, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, DeviceProgram
from devscope.runtime.drivers import cuda_api as api
from devscope.runtime.drivers.build_apart import build_apart, refuse_damaged
from devscope.runtime.drivers.cuda_api import CudaLibrary
from devscope.runtime.drivers.opencl_api import error_name
from devscope.runtime.drivers.opencl_device import ClQueue, OpenCL
from devscope.runtime.native import abi

# The structs of native/cuda.c: what it calls, as what it stands for contexts and queues, and its table.
Cuda = abi.struct(
    "Cuda",
    "cuCtxPushCurrent cuCtxPopCurrent cuMemAlloc cuMemFree cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync",
    "cuPointerGetAttribute cuLaunchKernel cuStreamSynchronize cuStreamWaitEvent",
    "cuEventCreate cuEventRecord cuEventQuery cuEventSynchronize",
)
CudaContext = abi.struct("CudaContext", "cuda context")
CudaStream = abi.struct(
    "CudaStream", "context stream issued marked", {"numbers": ctypes.c_int64 * 64, "marks": ctypes.c_int64 * 64}
)
CudaDriver = abi.struct("CudaDriver", {"driver": ctypes.c_int64 * 16, "functions": OpenCL})

_STATUS = -1000
"""Statuses of CUDA's are below it: CUDA_STATUS of cuda.c."""

_LOG_BYTES = 1 << 14


@dataclass(eq=False, repr=False)
class CudaDevice(Device):
    """One CUDA device. ``architecture``: what code for it is compiled for, where the program does not say."""

    library: CudaLibrary
    handle: int
    architecture: str
    _context: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def target_options(self) -> Mapping[str, str | int]:
        return {"arch": self.architecture}

    def shares_memory_with(self, other: Device) -> bool:
        return other is self

    def error_name(self, status: int) -> str:
        return self.library.error_name(_STATUS - status) if status < _STATUS else error_name(status)

    def context(self) -> Any:
        """The native record of the device's primary context, which libraries use, too. Raises
        :class:`DeviceError`."""
        with self._lock:
            if self._context is None:
                functions = Cuda(**{name: self.library.address(name) for name, *_ in Cuda._fields_})
                with self.errors("no context could be created"):
                    handle = self.library.handle("cuDevicePrimaryCtxRetain", self.handle)
                self._functions = functions  # which the record has the address of
                self._context = CudaContext(ctypes.addressof(functions), handle)
            return self._context

    @contextmanager
    def current(self) -> Generator[CudaLibrary]:
        """In its body, the device's context is the thread's."""
        self.library.call("cuCtxPushCurrent_v2", self.context().context)
        try:
            yield self.library
        finally:
            self.library.status("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    def open(self, record: Any, made: ExitStack) -> None:
        queue, transfers = (CudaStream(context=ctypes.addressof(self.context())) for _ in range(2))
        made.callback(self._close, queue, transfers)
        with self.errors("no stream could be created"), self.current() as library:
            for stream in (queue, transfers):
                stream.stream = library.handle("cuStreamCreate", api.STREAM_NON_BLOCKING)
        state = ClQueue(
            cl=record.driver + CudaDriver.functions.offset,
            queue=ctypes.addressof(queue),
            transfers=ctypes.addressof(transfers),
        )
        made.callback(lambda: state)
        record.domain = ctypes.addressof(self.context())
        record.state = ctypes.addressof(state)

    def _close(self, *streams: Any) -> None:
        with self.current() as library:
            for stream in streams:
                if stream.stream:
                    library.status("cuStreamSynchronize", stream.stream)
                    library.status("cuStreamDestroy_v2", stream.stream)
                for mark in filter(None, stream.marks):
                    library.status("cuEventDestroy_v2", mark)

    def build(self, binary: bytes, cached: bytes | None = None) -> tuple[DeviceProgram, bytes | None]:
        if cached is not None:
            try:
                return CudaProgram(self, cached), None
            except DeviceError:
                pass  # made by another driver: build it anew
        refuse_damaged(self.label, "cuda", binary)
        with self.current():
            cubin = self._assemble(binary)
        return CudaProgram(self, cubin), cubin

    def build_apart(self, binary: bytes) -> bytes | None:
        return build_apart(self.label, self.name, "cuda", binary)

    def _assemble(self, ptx: bytes) -> bytes:
        """The machine code of PTX, which is text that ends with 0. Raises :class:`DeviceError`."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        keys = (c_int32 * 2)(api.JIT_ERROR_LOG_BUFFER, api.JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), len(log))
        library, text = self.library, ptx.rstrip(b"\0") + b"\0"
        linker = library.last_handle("cuLinkCreate_v2", 2, keys, values)
        try:
            code, size = c_void_p(), c_size_t()
            status = library.status(
                "cuLinkAddData_v2", linker, api.JIT_INPUT_PTX, text, len(text), None, 0, None, None
            )
            status = status or library.status("cuLinkComplete", linker, ctypes.byref(code), ctypes.byref(size))
            if status:
                raise DeviceError(
                    f"{self.label}: the driver refused the PTX: {library.error_name(status)}",
                    notes=log.value.decode(errors="replace").strip().splitlines(),
                )
            return ctypes.string_at(code, size.value)
        finally:
            library.status("cuLinkDestroy", linker)


class CudaProgram(DeviceProgram):
    """Kernels that are loaded."""

    def __init__(self, device: CudaDevice, code: bytes) -> None:
        self._device = device
        with device.errors("the driver does not load the program"), device.current() as library:
            self._module = library.handle("cuModuleLoadData", code)

    def create_kernel(self, name: str, arguments: int) -> int:
        device = self._device
        with device.errors(f"kernel '{name}' of the program could not be created"), device.current() as library:
            kernel = library.handle("cuModuleGetFunction", self._module, name.encode())
            count = library.parameter_count(kernel)
            if count is not None and count > arguments:
                raise DeviceError(f"it takes {count} arguments, the program's record lists {arguments}")
            # More than every device has, a kernel gets only where that was said before.
            fixed = library.integer("cuFuncGetAttribute", api.FUNCTION_SHARED_SIZE_BYTES, kernel)
            room = device.local_memory_bytes - fixed
            library.call("cuFuncSetAttribute", kernel, api.FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES, room)
        return kernel

    def release_kernel(self, kernel: int) -> None:
        """A kernel is the module's."""

    def release(self) -> None:
        with self._device.current() as library:
            library.status("cuModuleUnload", self._module)
