"""Turns the error that the native runtime recorded into an exception."""

from __future__ import annotations

from collections.abc import Sequence

from devscope.errors import DeviceError
from devscope.runtime.devices import PhysicalDevice
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.native.layout import Error, Operation, Origin, RuntimeCode
from devscope.runtime.opencl_api import error_name
from devscope.runtime.program import DeviceSpec

_HOST_CODES = {1: "out of host memory", 2: "not possible on the host"}
_DEFECT = "the compiled program is wrong: please report this with the program that was compiled"


def describe_error(error: Error, specs: Sequence[DeviceSpec], physical: Sequence[PhysicalDevice]) -> DeviceError:
    """The exception for a recorded error; names the virtual and the physical device and the operation."""
    known = 0 <= error.slot < len(specs)
    where = _device(specs[error.slot], physical[error.slot]) if known else f"slot {error.slot}"
    what = _operation(error, specs[error.slot]) if known else _NAMES[Operation(error.operation)]
    if error.origin == Origin.RUNTIME:
        reason, note = _runtime_reason(error)
        return DeviceError(f"{where}: {what} failed: {reason}", notes=[note] if note else ())
    if known and physical[error.slot].opencl is not None:
        reason = error_name(error.code)
    else:
        reason = _HOST_CODES.get(error.code, f"error {error.code}")
    return DeviceError(f"{where}: {what} failed: {reason}")


def _device(spec: DeviceSpec, physical: PhysicalDevice) -> str:
    if physical.opencl is None:
        return f"{spec.name} (host)"
    if spec.name == physical.name:
        return physical.opencl.label
    return f"{spec.name} on {physical.opencl.label}"


_NAMES = {
    Operation.ALLOC: "an allocation",
    Operation.FREE: "freeing a buffer",
    Operation.COPY: "a copy",
    Operation.CONSTANT: "using a constant",
    Operation.LAUNCH: "a kernel launch",
}


def _operation(error: Error, spec: DeviceSpec) -> str:
    match error.operation:
        case Operation.ALLOC:
            return f"allocating {format_bytes(error.detail)}"
        case Operation.FREE:
            return _NAMES[Operation.FREE]
        case Operation.COPY:
            return f"copying {format_bytes(error.detail)}"
        case Operation.CONSTANT:
            return f"using constant {error.detail}"
        case _:
            if 0 <= error.detail < len(spec.kernels):
                return f"launching kernel '{spec.kernels[error.detail].name}'"
            return f"launching kernel number {error.detail}"


def _runtime_reason(error: Error) -> tuple[str, str | None]:
    match error.code:
        case RuntimeCode.BAD_SLOT:
            return f"the program has {error.detail} device slots", _DEFECT
        case RuntimeCode.BAD_KERNEL:
            return "the device has no such kernel", _DEFECT
        case RuntimeCode.BAD_ARGUMENT_COUNT:
            return "the number of arguments is not the kernel's", _DEFECT
        case RuntimeCode.BAD_CONSTANT:
            return "the program has no such constant", _DEFECT
        case RuntimeCode.NEGATIVE_SIZE:
            return "the size is negative", "check the shapes that were given to the program"
        case _:
            return "out of host memory", None
