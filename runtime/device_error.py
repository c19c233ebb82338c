"""Turns the error that the native runtime recorded into an exception."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from devscope.errors import DeviceError, DevscopeError, ExecutionError, SourceLocation
from devscope.runtime.drivers import Device
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.native.abi import Code, Operation, Origin
from devscope.runtime.program import DeviceSpec

_SHAPES = "check the shapes that were given to the program"
_LAUNCH_SIZES = "check the sizes that the launch of the kernel computes"
_LIMITS = (Code.TOO_MUCH_LOCAL_MEMORY, Code.TOO_MANY_WORK_ITEMS, Code.BAD_LAUNCH_SIZE)
_DEFECT = "the compiled program is wrong: please report this with the program that was compiled"


def describe_error(error: Any, specs: Sequence[DeviceSpec], physical: Sequence[Device]) -> DevscopeError:
    """The exception for a recorded error; names the virtual and the physical device and the operation.

    The host code whose error it is must still be loaded.
    """
    if error.operation == Operation.ASSERT:
        return _failed_assertion(error.detail)
    known = 0 <= error.slot < len(specs)
    where = _device(specs[error.slot], physical[error.slot]) if known else f"slot {error.slot}"
    what = _operation(error, specs[error.slot]) if known else _NAMES[Operation(error.operation)]
    if error.origin == Origin.RUNTIME:
        if (error.operation, error.code) == (Operation.ALLOC, Code.NEGATIVE_SIZE):
            return negative_size(where, error.detail)
        reason, note = _runtime_reason(error, physical[error.slot] if known else None)
        return DeviceError(f"{where}: {what} failed: {reason}", notes=[note] if note else ())
    reason = physical[error.slot].error_name(error.code) if known else f"error {error.code}"
    return DeviceError(f"{where}: {what} failed: {reason}")


def negative_size(where: str, size: int) -> DeviceError:
    """The error for a tensor that has a dimension of a negative size."""
    return DeviceError(f"{where}: a tensor would have a dimension of size {size}", notes=[_SHAPES])


_MESSAGE = re.compile(r"(?:(.*?):(\d+):(\d+): )?(assertion failed.*)", re.DOTALL)


def _failed_assertion(address: int) -> ExecutionError:
    """The lowering puts where the assertion stands in front of its message, see assertions.py there."""
    text = ctypes.string_at(address).decode(errors="replace")
    match = _MESSAGE.fullmatch(text)
    if match is None or match[1] is None:
        return ExecutionError(text)
    return ExecutionError(match[4], SourceLocation(match[1], int(match[2]), int(match[3])))


def _device(spec: DeviceSpec, physical: Device) -> str:
    if physical.type == "cpu":
        return f"{spec.name} (host)"
    return physical.label if spec.name == physical.name else f"{spec.name} on {physical.label}"


_NAMES = {
    Operation.ALLOC: "an allocation",
    Operation.FREE: "freeing a buffer",
    Operation.COPY: "a copy",
    Operation.CONSTANT: "using a constant",
    Operation.LAUNCH: "a kernel launch",
}


def _operation(error: Any, spec: DeviceSpec) -> str:
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


def _limit(error: Any, device: Device) -> tuple[str, str | None]:
    """Why a device refuses the sizes of a launch."""
    if error.code == Code.BAD_LAUNCH_SIZE:
        return f"a size of its grid or workgroups is {error.size}", _LAUNCH_SIZES
    if error.code == Code.TOO_MANY_WORK_ITEMS:
        most = device.max_workgroup_size
        return f"a workgroup would have {error.size} work-items, of which the device allows {most}", _LAUNCH_SIZES
    if error.size < 0:
        return f"its local memory would have {error.size} bytes", _LAUNCH_SIZES
    needed, most = format_bytes(error.size), format_bytes(device.local_memory_bytes)
    return f"a workgroup would need {needed} of local memory, the device has {most}", _LAUNCH_SIZES


def _runtime_reason(error: Any, physical: Device | None) -> tuple[str, str | None]:
    if error.code in _LIMITS and physical is not None:
        return _limit(error, physical)
    match error.code:
        case Code.BAD_SLOT:
            return f"the program has {error.detail} device slots", _DEFECT
        case Code.BAD_KERNEL:
            return "the device has no such kernel", _DEFECT
        case Code.BAD_ARGUMENT_COUNT:
            return "the number of arguments is not the kernel's", _DEFECT
        case Code.BAD_CONSTANT:
            return "the program has no such constant", _DEFECT
        case Code.NEGATIVE_SIZE:
            return "the size is negative", _SHAPES
        case _:
            return "out of host memory", None
