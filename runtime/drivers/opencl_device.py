"""OpenCL devices: what is there, contexts and queues, building programs from SPIR-V."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_int32, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, DeviceProgram
from devscope.runtime.drivers import opencl_api as cl
from devscope.runtime.drivers.opencl_api import OpenCLLibrary, error_name
from devscope.runtime.drivers.opencl_libraries import load_libraries
from devscope.runtime.drivers.opencl_spirv import check_spirv


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


@dataclass(eq=False)
class OpenCLDevice(Device):
    """One OpenCL device that accepts SPIR-V, or one compute unit of such a device.

    ``name``: ``opencl:N``; ``opencl:N.K`` is compute unit K of it. ``shares_memory``: host and device use the same
    memory, at the same time if they use different buffers. ``partitionable``: the driver makes sub-devices of it.
    ``polled``: the host asks whether commands are complete, and waits for none in the driver.
    """

    library: OpenCLLibrary
    platform_handle: int
    handle: int
    device_type: int
    shares_memory: bool
    partitionable: bool
    shared_context: SharedContext
    polled: bool = False

    def shares_memory_with(self, other: Device) -> bool:
        if other.type == "cpu":
            return self.shares_memory
        return isinstance(other, OpenCLDevice) and other.shared_context is self.shared_context

    def error_name(self, status: int) -> str:
        return error_name(status)

    def context(self) -> int:
        """The ``cl_context`` of this device. Raises :class:`DeviceError`."""
        with _errors(f"{self.label}: no context could be created"):
            return self.shared_context.handle()

    def create_queue(self) -> int:
        """A new in-order queue; release it with :meth:`release_queue`. Raises :class:`DeviceError`."""
        with _errors(f"{self.label}: no command queue could be created"):
            return self.library.create("clCreateCommandQueue", self.context(), self.handle, 0)

    def release_queue(self, queue: int) -> None:
        """Waits for the work in the queue and releases it."""
        self.library.status("clFinish", queue)
        self.library.status("clReleaseCommandQueue", queue)

    def open(self, record: Any, layout: Any) -> Callable[[], None]:
        functions = layout.OpenCL(**self._functions([name for name, _ in layout.OpenCL._fields_]))
        state = layout.ClQueue(
            cl=ctypes.addressof(functions), polled=int(self.polled), shared=int(self.shares_memory)
        )

        def close(keep: Any = functions) -> None:
            for queue in (state.queue, state.transfers):
                if queue:
                    self.release_queue(queue)

        try:
            state.queue = self.create_queue()
            if not self.shares_memory:
                state.transfers = self.create_queue()
        except DeviceError:
            close()
            raise
        record.domain = self.context()
        record.state = ctypes.addressof(state)
        return close

    def build(self, binary: bytes, cached: bytes | None = None) -> tuple[DeviceProgram, bytes | None]:
        if cached is not None:
            try:
                return self._build_cached(cached), None
            except DeviceError:
                pass  # made by another driver: build it anew
        check_spirv(binary, self.label)
        create = self.library.create_with_il(self.platform_handle)
        if create is None:
            raise DeviceError(f"{self.label} has no function to create programs from SPIR-V")
        with _errors(f"{self.label}: the driver refused the SPIR-V module"):
            handle = self.library.create_with(create, "clCreateProgramWithIL", self.context(), binary, len(binary))
        program = OpenCLProgram(self, handle)
        self._build(program)
        return program, program.driver_binary()

    def _functions(self, names: Sequence[str]) -> dict[str, int]:
        found = self.library.addresses(names)
        optional = () if self.shares_memory else cl.SVM_FUNCTIONS
        if missing := [name for name, address in found.items() if not address and name not in optional]:
            raise DeviceError(f"{self.label}: the driver lacks {', '.join(missing)}")
        return found

    def _build_cached(self, cached: bytes) -> OpenCLProgram:
        length = c_size_t(len(cached))
        data = c_void_p(ctypes.cast(ctypes.c_char_p(cached), c_void_p).value)
        loaded = c_int32()
        handle = self.library.create(
            "clCreateProgramWithBinary",
            self.context(),
            1,
            self._device_list(),
            ctypes.byref(length),
            ctypes.byref(data),
            ctypes.byref(loaded),
        )
        program = OpenCLProgram(self, handle)
        if loaded.value:
            program.release()
            raise DeviceError(f"{self.label} refused a cached binary: {error_name(loaded.value)}")
        self._build(program)
        return program

    def _build(self, program: OpenCLProgram) -> None:
        status = self.library.status("clBuildProgram", program.handle, 1, self._device_list(), b"", None, None)
        if status:
            log = self.library.text("clGetProgramBuildInfo", program.handle, self.handle, cl.PROGRAM_BUILD_LOG)
            program.release()
            raise DeviceError(
                f"{self.label} could not build the kernels for target 'opencl': {error_name(status)}",
                notes=[f"build log: {log}"] if log else (),
            )

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
        sizes = library.info("clGetProgramInfo", self.handle, cl.PROGRAM_BINARY_SIZES)
        size = int.from_bytes(sizes, "little")
        if not size or len(sizes) > ctypes.sizeof(c_size_t):  # several devices share the context
            return None
        buffer = ctypes.create_string_buffer(size)
        pointer = c_void_p(ctypes.addressof(buffer))
        status = library.status(
            "clGetProgramInfo", self.handle, cl.PROGRAM_BINARIES, 8, ctypes.byref(pointer), None
        )
        return None if status else buffer.raw

    def create_kernel(self, name: str, arguments: int) -> int:
        library, label = self.device.library, self.device.label
        with _errors(f"{label}: kernel '{name}' of the program could not be created"):
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


@contextmanager
def _errors(prefix: str) -> Generator[None]:
    """Puts a device and an action before the message of a :class:`DeviceError` raised in its body."""
    try:
        yield
    except DeviceError as error:
        raise DeviceError(f"{prefix}: {error.message}", notes=error.notes) from None


def opencl_devices() -> tuple[list[OpenCLDevice], list[str]]:
    """All OpenCL devices that accept SPIR-V, and what went wrong while looking for them.

    The order is the same in every process: GPUs, accelerators, CPUs; within a type as the drivers list
    them. They are looked for once per process.
    """
    # Two lists would mean two contexts for one device.
    with _search_lock:
        return _search()


_search_lock = threading.Lock()


@cache
def _search() -> tuple[list[OpenCLDevice], list[str]]:
    libraries, problems = load_libraries()
    found: list[OpenCLDevice] = []
    seen: set[tuple[str, ...]] = set()
    for library in libraries:
        try:
            for platform in library.handles("clGetPlatformIDs"):
                key = _platform_key(library, platform)
                # The loader may know the driver that was already loaded directly.
                if key not in seen:
                    found.extend(_devices_of(library, platform, problems))
                seen.add(key)
        except DeviceError as error:
            problems.append(f"{library.path}: {error.message}")
    found.sort(key=lambda device: _RANK.get(device.device_type, len(_RANK)))
    for index, device in enumerate(found):
        device.name = f"opencl:{index}"
    return found, problems


_RANK = {cl.DEVICE_TYPE_GPU: 0, cl.DEVICE_TYPE_ACCELERATOR: 1, cl.DEVICE_TYPE_CPU: 2}
_TYPE_MASK = cl.DEVICE_TYPE_GPU | cl.DEVICE_TYPE_ACCELERATOR | cl.DEVICE_TYPE_CPU


def _platform_key(library: OpenCLLibrary, platform: int) -> tuple[str, ...]:
    keys = (cl.PLATFORM_NAME, cl.PLATFORM_VENDOR, cl.PLATFORM_VERSION)
    return tuple(library.text("clGetPlatformInfo", platform, key) for key in keys)


def _devices_of(library: OpenCLLibrary, platform: int, problems: list[str]) -> Iterator[OpenCLDevice]:
    for handle in library.handles("clGetDeviceIDs", platform, cl.DEVICE_TYPE_ALL):
        device = _describe(library, platform, handle)
        if device.spirv_versions and library.create_with_il(platform) is not None:
            yield device
        else:
            problems.append(f"{device.platform}: {device.description} does not accept SPIR-V")


def _describe(library: OpenCLLibrary, platform: int, handle: int) -> OpenCLDevice:
    def text(key: int) -> str:
        return library.text("clGetDeviceInfo", handle, key)

    def integer(key: int) -> int:
        return library.integer("clGetDeviceInfo", handle, key)

    platform_name = library.text("clGetPlatformInfo", platform, cl.PLATFORM_NAME)
    platform_version = library.text("clGetPlatformInfo", platform, cl.PLATFORM_VERSION)
    unified = integer(cl.DEVICE_HOST_UNIFIED_MEMORY) != 0
    fine_grained = integer(cl.DEVICE_SVM_CAPABILITIES) & cl.DEVICE_SVM_FINE_GRAIN_BUFFER
    partitions = library.info("clGetDeviceInfo", handle, cl.DEVICE_PARTITION_PROPERTIES)
    versions = [word.removeprefix("SPIR-V_") for word in text(cl.DEVICE_IL_VERSION).split()]
    return OpenCLDevice(
        name="opencl",
        type="opencl",
        description=text(cl.DEVICE_NAME),
        platform=f"{platform_name}, {platform_version}",
        driver=text(cl.DRIVER_VERSION),
        memory_bytes=integer(cl.DEVICE_GLOBAL_MEM_SIZE),
        max_workgroup_size=integer(cl.DEVICE_MAX_WORK_GROUP_SIZE),
        compute_units=integer(cl.DEVICE_MAX_COMPUTE_UNITS),
        fp64=integer(cl.DEVICE_DOUBLE_FP_CONFIG) != 0,
        fp16=integer(cl.DEVICE_HALF_FP_CONFIG) != 0,
        spirv_versions=tuple(version for version in versions if version[:1].isdigit()),
        local_memory_bytes=integer(cl.DEVICE_LOCAL_MEM_SIZE),
        base_alignment=integer(cl.DEVICE_MEM_BASE_ADDR_ALIGN) // 8,
        identity="|".join([platform_name, platform_version, text(cl.DEVICE_NAME), text(cl.DRIVER_VERSION)]),
        library=library,
        platform_handle=platform,
        handle=handle,
        device_type=integer(cl.DEVICE_TYPE) & _TYPE_MASK,
        shares_memory=bool(unified and fine_grained and library.has_svm),
        partitionable=cl.DEVICE_PARTITION_EQUALLY in memoryview(partitions).cast("q"),
        shared_context=SharedContext(library, [handle]),
    )
