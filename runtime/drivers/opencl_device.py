"""One OpenCL device: contexts and queues, building programs from SPIR-V."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from ctypes import c_char_p, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, DeviceProgram
from devscope.runtime.drivers import opencl_api as cl
from devscope.runtime.drivers.build_apart import build_apart, refuse_damaged
from devscope.runtime.drivers.opencl_api import OpenCLLibrary, error_name
from devscope.runtime.drivers.opencl_spir import BUILD_OPTIONS, to_spir
from devscope.runtime.native import abi

# The structs of native/opencl.c: what it calls, and the state of a device.
OpenCL = abi.struct(
    "OpenCL",
    "clCreateBuffer clCreateSubBuffer clReleaseMemObject clEnqueueWriteBuffer clEnqueueReadBuffer",
    "clEnqueueCopyBuffer clSetKernelArg clEnqueueNDRangeKernel clEnqueueBarrierWithWaitList clFlush clFinish",
    "clWaitForEvents clGetEventInfo clRetainEvent clReleaseEvent clSVMAlloc clSVMFree",
)
ClQueue = abi.struct(
    "ClQueue", "cl queue transfers shared polled joined issued completed", {"events": ctypes.c_int64 * 64}
)


@dataclass
class SharedContext:
    """The ``cl_context`` of devices that reach each other's memory: made at the first use, one per process."""

    library: OpenCLLibrary
    devices: list[int]
    _handle: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self) -> int:
        """The context. Raises :class:`DeviceError`."""
        with self._lock:
            if self._handle is None:
                devices = (c_void_p * len(self.devices))(*self.devices)
                self._handle = self.library.create("clCreateContext", None, len(self.devices), devices, None, None)
            return self._handle


_SUBGROUP = 16
"""More work-items have fewer registers each."""


@dataclass(eq=False, repr=False)
class OpenCLDevice(Device):
    """One OpenCL device that accepts SPIR-V, or one compute unit of such a device.

    ``name``: ``opencl:N``; ``opencl:N.K`` is compute unit K of it. ``shares_memory``: host and device use the same
    memory, at the same time if they use different buffers. ``partitionable``: the driver makes sub-devices of it.
    ``polled``: the host asks whether commands are complete, and waits for none in the driver. ``translator``: the
    program that makes what the driver takes of SPIR-V, see `opencl_spir`.
    """

    library: OpenCLLibrary
    create_with_il: Any
    handle: int
    device_type: int
    shares_memory: bool
    partitionable: bool
    shared_context: SharedContext
    polled: bool = False
    translator: str | None = None

    @property
    def cores(self) -> int:
        return int(self.polled and bool(self.device_type & cl.DEVICE_TYPE_CPU))

    @property
    def target_options(self) -> Mapping[str, str | int]:
        if self.device_type & cl.DEVICE_TYPE_GPU:
            return {"type": "gpu", **self._subgroup()}
        width = self.library.integer("clGetDeviceInfo", self.handle, cl.DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)
        return {"type": "cpu", **({"vector": 4 * width} if width else {})}

    def _subgroup(self) -> Mapping[str, int]:
        """How many work-items exchange numbers, where kernels can be compiled for one such number."""
        known = self.library.text("clGetDeviceInfo", self.handle, cl.DEVICE_EXTENSIONS).split()
        if not cl.SUBGROUP_EXTENSIONS.issubset(known) or cl.SUBGROUP_SPIRV not in self.spirv_versions:
            return {}
        found = self.library.info("clGetDeviceInfo", self.handle, cl.DEVICE_SUB_GROUP_SIZES)
        sizes = sorted(memoryview(found).cast("Q"))
        return {"subgroup": next((size for size in sizes if size >= _SUBGROUP), sizes[-1])} if sizes else {}

    def shares_memory_with(self, other: Device) -> bool:
        if other.type == "cpu":
            return self.shares_memory
        return isinstance(other, OpenCLDevice) and other.shared_context is self.shared_context

    def error_name(self, status: int) -> str:
        return error_name(status)

    def context(self) -> int:
        """The ``cl_context`` of this device. Raises :class:`DeviceError`."""
        with self.errors("no context could be created"):
            return self.shared_context.handle()

    def create_queue(self) -> int:
        """A new in-order queue; release it with :meth:`release_queue`. Raises :class:`DeviceError`."""
        with self.errors("no command queue could be created"):
            return self.library.create("clCreateCommandQueue", self.context(), self.handle, 0)

    def release_queue(self, queue: int) -> None:
        """Waits for the work in the queue and releases it."""
        self.library.status("clFinish", queue)
        self.library.status("clReleaseCommandQueue", queue)

    def open(self, record: Any, made: ExitStack) -> None:
        addresses = {name: self.library.address(name) for name, *_ in OpenCL._fields_}
        if missing := [name for name, at in addresses.items() if not at and name not in cl.SVM_FUNCTIONS]:
            raise DeviceError(f"{self.label}: the driver lacks {', '.join(missing)}")
        functions = OpenCL(**addresses)
        state = ClQueue(
            ctypes.addressof(functions),
            polled=int(self.polled),
            joined=int(bool(self.device_type & cl.DEVICE_TYPE_CPU)),
            shared=int(self.shares_memory),
        )
        made.callback(self._close, state, functions)
        state.queue = self.create_queue()
        if not self.shares_memory:
            state.transfers = self.create_queue()
        record.domain = self.context()
        record.state = ctypes.addressof(state)

    def _close(self, state: Any, _functions: Any) -> None:
        """Keeps both structs until then: the native runtime uses them."""
        for queue in (state.queue, state.transfers):
            if queue:
                self.release_queue(queue)

    def build(self, binary: bytes, cached: bytes | None = None) -> tuple[DeviceProgram, bytes | None]:
        if cached is not None:
            try:
                return self._built(self._with_binary(cached)), None
            except DeviceError:
                pass  # made by another driver: build it anew
        refuse_damaged(self.label, "opencl", binary)
        with self.errors("the driver refused the SPIR-V module"):
            if self.translator is not None:
                handle, options = self._with_binary(to_spir(self.translator, binary)), BUILD_OPTIONS
            else:
                handle, options = self._with_il(binary), b""
        program = self._built(handle, options)
        return program, program.driver_binary()

    def _with_il(self, binary: bytes) -> int:
        return self.library.create(
            "clCreateProgramWithIL", self.context(), binary, len(binary), function=self.create_with_il
        )

    def _with_binary(self, binary: bytes) -> int:
        sizes, binaries = (c_size_t * 1)(len(binary)), (c_char_p * 1)(binary)
        return self.library.create(
            "clCreateProgramWithBinary", self.context(), 1, self._device_list(), sizes, binaries, None
        )

    def build_apart(self, binary: bytes) -> bytes | None:
        return build_apart(self.label, self.name, "opencl", binary)

    def _built(self, handle: int, options: bytes = b"") -> OpenCLProgram:
        program = OpenCLProgram(self, handle)
        status = self.library.status("clBuildProgram", handle, 1, self._device_list(), options, None, None)
        if status:
            log = self.library.text("clGetProgramBuildInfo", handle, self.handle, cl.PROGRAM_BUILD_LOG)
            program.release()
            raise DeviceError(
                f"{self.label} could not build the kernels for target 'opencl': {error_name(status)}",
                notes=[f"build log: {log}"] if log else (),
            )
        return program

    def _device_list(self) -> Any:
        return (c_void_p * 1)(self.handle)


class OpenCLProgram(DeviceProgram):
    """A built program of one device."""

    def __init__(self, device: OpenCLDevice, handle: int) -> None:
        self.device = device
        self.handle = handle

    def driver_binary(self) -> bytes | None:
        """The driver's binary of the program, None when it does not give one."""
        library = self.device.library
        found = library.info("clGetProgramInfo", self.handle, cl.PROGRAM_BINARY_SIZES)
        sizes = (c_size_t * (len(found) // ctypes.sizeof(c_size_t))).from_buffer_copy(found)
        if sum(map(bool, sizes)) != 1:  # of all devices of the context, the program is built for this one
            return None
        buffer = ctypes.create_string_buffer(sum(sizes))
        pointers = (c_void_p * len(sizes))(*(ctypes.addressof(buffer) if size else None for size in sizes))
        status = library.status(
            "clGetProgramInfo", self.handle, cl.PROGRAM_BINARIES, ctypes.sizeof(pointers), pointers, None
        )
        return None if status else buffer.raw

    def create_kernel(self, name: str, arguments: int) -> int:
        library, label = self.device.library, self.device.label
        with self.device.errors(f"kernel '{name}' of the program could not be created"):
            kernel = library.create("clCreateKernel", self.handle, name.encode())
        actual = library.integer("clGetKernelInfo", kernel, cl.KERNEL_NUM_ARGS)
        if actual != arguments:
            self.release_kernel(kernel)
            raise DeviceError(
                f"{label}: kernel '{name}' takes {actual} arguments, the program's record lists {arguments}"
            )
        return kernel

    def release_kernel(self, kernel: int) -> None:
        self.device.library.status("clReleaseKernel", kernel)

    def release(self) -> None:
        self.device.library.status("clReleaseProgram", self.handle)
