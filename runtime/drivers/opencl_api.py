"""The part of the OpenCL C API that devscope calls, through ctypes.

pyopencl is not used here: its import takes longer than everything else that a saved program does before
its first result, and compiled code needs the driver's addresses anyway.
"""

import ctypes
from ctypes import c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from devscope.errors import DeviceError

DEVICE_NOT_FOUND = -1
PLATFORM_NOT_FOUND_KHR = -1001

DEVICE_TYPE_ALL = 0xFFFFFFFF
DEVICE_TYPE_CPU = 1 << 1
DEVICE_TYPE_GPU = 1 << 2
DEVICE_TYPE_ACCELERATOR = 1 << 3

PLATFORM_VERSION = 0x0901
PLATFORM_NAME = 0x0902
PLATFORM_VENDOR = 0x0903

DEVICE_TYPE = 0x1000
DEVICE_MAX_COMPUTE_UNITS = 0x1002
DEVICE_MAX_WORK_GROUP_SIZE = 0x1004
DEVICE_GLOBAL_MEM_SIZE = 0x101F
DEVICE_LOCAL_MEM_SIZE = 0x1023
DEVICE_NAME = 0x102B
DRIVER_VERSION = 0x102D
DEVICE_EXTENSIONS = 0x1030
DEVICE_DOUBLE_FP_CONFIG = 0x1032
DEVICE_HALF_FP_CONFIG = 0x1033
DEVICE_IL_VERSION = 0x105B
DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019
DEVICE_HOST_UNIFIED_MEMORY = 0x1035
DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A
DEVICE_PARTITION_PROPERTIES = 0x1044
DEVICE_PARTITION_EQUALLY = 0x1086
DEVICE_SVM_CAPABILITIES = 0x1053
DEVICE_SUB_GROUP_SIZES = 0x4108
DEVICE_SVM_FINE_GRAIN_BUFFER = 1 << 1

PROGRAM_BINARY_SIZES = 0x1165
PROGRAM_BINARIES = 0x1166
PROGRAM_BUILD_LOG = 0x1183
KERNEL_NUM_ARGS = 0x1191

SUBGROUP_EXTENSIONS = frozenset(("cl_khr_subgroup_shuffle", "cl_intel_required_subgroup_size"))
SUBGROUP_SPIRV = "1.3"
"""What a device has in which work-items exchange numbers in sub-groups of a known size."""

_TYPES = {"p": c_void_p, "i": c_int32, "u": c_uint32, "l": c_uint64, "z": c_size_t}

# Types of the parameters (pointers of any kind are p), a colon, type of the result.
_SIGNATURES = {
    "clGetPlatformIDs": "upp:i",
    "clGetPlatformInfo": "puzpp:i",
    "clGetDeviceIDs": "plupp:i",
    "clGetDeviceInfo": "puzpp:i",
    "clCreateContext": "pupppp:p",
    "clCreateCommandQueue": "pplp:p",
    "clReleaseCommandQueue": "p:i",
    "clCreateProgramWithBinary": "puppppp:p",
    "clBuildProgram": "pupppp:i",
    "clGetProgramInfo": "puzpp:i",
    "clGetProgramBuildInfo": "ppuzpp:i",
    "clReleaseProgram": "p:i",
    "clCreateKernel": "ppp:p",
    "clGetKernelInfo": "puzpp:i",
    "clReleaseKernel": "p:i",
    "clCreateSubDevices": "ppupp:i",
    "clFinish": "p:i",
    "clGetExtensionFunctionAddressForPlatform": "pp:p",
}
_CREATE_WITH_IL = "ppzp:p"

SVM_FUNCTIONS = ("clSVMAlloc", "clSVMFree")
"""Those that drivers before OpenCL 2.0 lack; they are used where a device says that it has SVM."""

_ERROR_NAMES = {
    -1: "device not found",
    -2: "device not available",
    -3: "compiler not available",
    -4: "out of device memory",
    -5: "out of resources",
    -6: "out of host memory",
    -8: "copy between overlapping regions",
    -11: "the program could not be built",
    -14: "an earlier command failed",
    -30: "invalid value",
    -33: "invalid device",
    -34: "invalid context",
    -36: "invalid command queue",
    -38: "invalid buffer",
    -42: "invalid device binary",
    -43: "invalid build options",
    -44: "invalid program",
    -45: "the program has no code for this device",
    -46: "no kernel of that name",
    -48: "invalid kernel",
    -49: "invalid argument index",
    -50: "invalid argument value",
    -51: "invalid argument size",
    -52: "kernel arguments are not all set",
    -53: "invalid number of dimensions",
    -54: "invalid workgroup size",
    -55: "the workgroup is larger than the device allows",
    -59: "invalid operation",
    -61: "the buffer is larger than the device allows",
    -63: "invalid global size",
}


def error_name(status: int) -> str:
    """An OpenCL status as words, with its number."""
    return f"{_ERROR_NAMES.get(status, 'driver error')} (OpenCL error {status})"


def _types(signature: str) -> tuple[Any, ...]:
    """The type of the result and those of the parameters."""
    parameters, _, result = signature.partition(":")
    return tuple(_TYPES[letter] for letter in result + parameters)


class OpenCLLibrary:
    """One loaded library with the OpenCL C API: a driver, or a loader that stands before several.

    Raises :class:`OSError` when the file cannot be loaded or lacks a function.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        try:
            for name, signature in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.restype, *function.argtypes = _types(signature)
        except AttributeError as error:
            raise OSError(f"{path} does not export the OpenCL API: {error}") from None

    def address(self, name: str) -> int:
        """Where a function of the API is; 0 if the library lacks it."""
        function = getattr(self._library, name, None)
        return 0 if function is None else ctypes.cast(function, c_void_p).value or 0

    def status(self, name: str, *arguments: Any) -> int:
        """Calls a function that returns a status."""
        return getattr(self._library, name)(*arguments)

    def create(self, name: str, *arguments: Any, function: Any = None) -> int:
        """Calls a function that returns a handle and takes a pointer to a status last.

        ``function`` is for one that is not part of every library. Raises :class:`DeviceError`.
        """
        status = c_int32()
        handle = (function or getattr(self._library, name))(*arguments, ctypes.byref(status))
        if status.value or not handle:
            raise DeviceError(f"{name} failed: {error_name(status.value)}")
        return handle

    def create_with_il(self, platform: int) -> Any | None:
        """``clCreateProgramWithIL`` (OpenCL 2.1) or its older extension; None when there is neither."""
        address = self.address("clCreateProgramWithIL") or self._library.clGetExtensionFunctionAddressForPlatform(
            platform, b"clCreateProgramWithILKHR"
        )
        return ctypes.CFUNCTYPE(*_types(_CREATE_WITH_IL))(address) if address else None

    def info(self, name: str, *arguments: Any) -> bytes:
        """Reads a value of unknown length from one of the ``clGet...Info`` functions; empty on failure."""
        size = c_size_t()
        if self.status(name, *arguments, 0, None, ctypes.byref(size)):
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        if self.status(name, *arguments, size.value, buffer, None):
            return b""
        return buffer.raw

    def text(self, name: str, *arguments: Any) -> str:
        """As :meth:`info`, for strings."""
        return self.info(name, *arguments).rstrip(b"\0").decode("utf-8", "replace").strip()

    def integer(self, name: str, *arguments: Any) -> int:
        """As :meth:`info`, for unsigned integers of any width; 0 on failure."""
        return int.from_bytes(self.info(name, *arguments), "little")

    def handles(self, name: str, *arguments: Any) -> list[int]:
        """Reads a list of platform or device handles; an empty list when there is none."""
        count = c_uint32()
        status = self.status(name, *arguments, 0, None, ctypes.byref(count))
        found = (c_void_p * count.value)()
        if not status and count.value:
            status = self.status(name, *arguments, count.value, found, None)
        if status and status not in (DEVICE_NOT_FOUND, PLATFORM_NOT_FOUND_KHR):
            raise DeviceError(f"{name} failed: {error_name(status)}")
        return [handle for handle in found if handle]
