"""The part of CUDA's driver API that devscope calls, through ctypes: NVIDIA's toolkit is not needed."""

import ctypes
from ctypes import c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from devscope.errors import DeviceError

LIBRARY = "libcuda.so.1"

MAX_THREADS_PER_BLOCK = 1
MULTIPROCESSOR_COUNT = 16
COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76
MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97

FUNCTION_SHARED_SIZE_BYTES = 1
FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

STREAM_NON_BLOCKING = 1

JIT_ERROR_LOG_BUFFER = 5
JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
JIT_INPUT_PTX = 1

_NO_DEVICE = 100

_TYPES = {"p": c_void_p, "i": c_int32, "u": c_uint32, "l": c_uint64, "z": c_size_t, "s": c_char_p}

# Types of the parameters; pointers of any kind are p. All return a status.
_SIGNATURES = {
    "cuInit": "u",
    "cuDriverGetVersion": "p",
    "cuGetErrorName": "ip",
    "cuGetErrorString": "ip",
    "cuDeviceGetCount": "p",
    "cuDeviceGet": "pi",
    "cuDeviceGetName": "pii",
    "cuDeviceGetAttribute": "pii",
    "cuDeviceTotalMem_v2": "pi",
    "cuDevicePrimaryCtxRetain": "pi",
    "cuCtxPushCurrent_v2": "p",
    "cuCtxPopCurrent_v2": "p",
    "cuStreamCreate": "pu",
    "cuStreamSynchronize": "p",
    "cuStreamDestroy_v2": "p",
    "cuEventDestroy_v2": "p",
    "cuLinkCreate_v2": "uppp",
    "cuLinkAddData_v2": "pipzsupp",
    "cuLinkComplete": "ppp",
    "cuLinkDestroy": "p",
    "cuModuleLoadData": "pp",
    "cuModuleUnload": "p",
    "cuModuleGetFunction": "pps",
    "cuFuncGetAttribute": "pip",
    "cuFuncSetAttribute": "pii",
}
_VERSIONED = (
    "cuCtxPushCurrent cuCtxPopCurrent cuMemAlloc cuMemFree cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync"
)
"""Functions of which the library has an older version of that name, for 32 bits."""


class CudaLibrary:
    """NVIDIA's driver, loaded: ``library``. Raises :class:`OSError` when it lacks a function."""

    def __init__(self, library: Any) -> None:
        self._library = library
        try:
            for name, signature in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = c_int32, [_TYPES[letter] for letter in signature]
        except AttributeError as error:
            raise OSError(f"{LIBRARY} does not have CUDA's driver API: {error}") from None

    def address(self, name: str) -> int:
        """Where a function of the API is. Raises :class:`DeviceError` if the library lacks it."""
        exported = f"{name}_v2" if name in _VERSIONED.split() else name
        function = getattr(self._library, exported, None)
        if function is None:
            raise DeviceError(f"{LIBRARY} lacks {exported}")
        return ctypes.cast(function, c_void_p).value or 0

    def status(self, name: str, *arguments: Any) -> int:
        """Calls a function."""
        return getattr(self._library, name)(*arguments)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function. Raises :class:`DeviceError` if it fails."""
        if status := self.status(name, *arguments):
            raise DeviceError(f"{name} failed: {self.error_name(status)}")

    def handle(self, name: str, *arguments: Any) -> int:
        """What a function writes to its first parameter, a pointer or another handle."""
        found = c_void_p()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value or 0

    def integer(self, name: str, *arguments: Any) -> int:
        """As :meth:`handle`, of 32 bits."""
        found = c_int32()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value

    def last_handle(self, name: str, *arguments: Any) -> int:
        """What a function writes to its last parameter, a pointer to a handle."""
        found = c_void_p()
        self.call(name, *arguments, ctypes.byref(found))
        return found.value or 0

    def parameter_count(self, kernel: int) -> int | None:
        """How many parameters a kernel has; None where the driver, before CUDA 12.4, does not say."""
        info = getattr(self._library, "cuFuncGetParamInfo", None)
        if info is None:
            return None
        info.restype, info.argtypes = c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]
        offset, size = c_size_t(), c_size_t()
        count = 0
        while info(kernel, count, ctypes.byref(offset), ctypes.byref(size)) == 0:
            count += 1
        return count

    def device_name(self, device: int) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), device)
        return text.value.decode(errors="replace")

    def total_memory(self, device: int) -> int:
        """Bytes of a device's memory."""
        size = c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        return size.value

    def device_count(self) -> int:
        """How many devices there are, after CUDA was initialised. Raises :class:`DeviceError`."""
        status = self.status("cuInit", 0)
        if status == _NO_DEVICE:
            return 0
        if status:
            raise DeviceError(f"cuInit failed: {self.error_name(status)}")
        return self.integer("cuDeviceGetCount")

    def error_name(self, status: int) -> str:
        """A status as words, with its name."""
        found = [c_char_p(), c_char_p()]
        for name, text in zip(("cuGetErrorString", "cuGetErrorName"), found, strict=True):
            self.status(name, status, ctypes.byref(text))
        words, name = ((text.value or b"").decode(errors="replace") for text in found)
        return f"{words or 'driver error'} ({name or f'CUDA error {status}'})"
