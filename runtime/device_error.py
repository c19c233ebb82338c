"""Turns the error that the native runtime recorded into an exception."""

import ctypes
import re
from collections.abc import Sequence
from typing import Any

from devscope.errors import DeviceError, DevscopeError, ExecutionError, InputError, SourceLocation
from devscope.runtime.drivers import Device
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.native.abi import Code, Operation, Origin
from devscope.runtime.program import DeviceSpec

_SHAPES = "check the shapes that were given to the program"
_LAUNCH_SIZES = "check the sizes that the launch of the kernel computes"
_DEFECT = "the compiled program is wrong: please report this with the program that was compiled"

# An operation with and without its detail.
_OPERATIONS: dict[int, tuple[str, str]] = {
    Operation.ALLOC: ("allocating {bytes}", "an allocation"),
    Operation.FREE: ("freeing a buffer", "freeing a buffer"),
    Operation.COPY: ("copying {bytes}", "a copy"),
    Operation.CONSTANT: ("using constant {error.detail}", "using a constant"),
    Operation.LAUNCH: ("launching kernel {kernel}", "a kernel launch"),
    Operation.LEND: ("enqueueing work of a library", "work of a library"),
}

# What the runtime refuses, and what to do about it.
_REASONS: dict[int, tuple[str, str | None]] = {
    Code.BAD_KERNEL: ("the device has no such kernel", _DEFECT),
    Code.BAD_ARGUMENT_COUNT: ("the number of arguments is not the kernel's", _DEFECT),
    Code.BAD_CONSTANT: ("the program has no such constant", _DEFECT),
    Code.BAD_STATE: ("the program has no such state, or nothing in it", _DEFECT),
    Code.NEGATIVE_SIZE: ("the size is negative", _SHAPES),
    Code.OUT_OF_HOST_MEMORY: ("out of host memory", None),
    Code.BAD_LAUNCH_SIZE: ("a size of its grid or workgroups is {error.size}", _LAUNCH_SIZES),
    Code.TOO_MANY_WORK_ITEMS: (
        "a workgroup would have {error.size} work-items, of which the device allows {device.max_workgroup_size}",
        _LAUNCH_SIZES,
    ),
    Code.TOO_MUCH_LOCAL_MEMORY: (
        "a workgroup would need {local} of local memory, the device has {most_local}",
        _LAUNCH_SIZES,
    ),
}


def describe_error(error: Any, specs: Sequence[DeviceSpec], physical: Sequence[Device]) -> DevscopeError:
    """The exception for a recorded error; names the virtual and the physical device and the operation.

    The host code whose error it is must still be loaded.
    """
    if error.code == Code.FORKED and error.origin == Origin.RUNTIME:
        return DeviceError(
            "this process was forked in the middle of a call, which cannot go on here",
            notes=["let handlers of signals start processes with subprocess, or fork between calls"],
        )
    if error.operation == Operation.ASSERT:
        return _failed_assertion(error.detail, error.numbers)
    operation, without_detail = _OPERATIONS[error.operation]
    if not 0 <= error.slot < len(specs):
        what = f"slot {error.slot}: {without_detail}"
        return DeviceError(f"{what} failed: the program has {error.detail} device slots", notes=[_DEFECT])
    spec, device = specs[error.slot], physical[error.slot]
    kernels = [f"'{kernel.name}'" for kernel in spec.kernels]
    facts = {
        "error": error,
        "device": device,
        "bytes": format_bytes(error.detail),
        "kernel": kernels[error.detail] if 0 <= error.detail < len(kernels) else f"number {error.detail}",
        "local": format_bytes(error.size),
        "most_local": format_bytes(device.local_memory_bytes),
    }
    where, what = _device(spec, device), operation.format(**facts)
    if error.origin == Origin.DRIVER:
        return DeviceError(f"{where}: {what} failed: {device.error_name(error.code)}")
    if (error.operation, error.code) == (Operation.ALLOC, Code.NEGATIVE_SIZE):
        return negative_size(where, error.detail)
    reason, note = _REASONS[error.code]
    if error.code == Code.TOO_MUCH_LOCAL_MEMORY and error.size < 0:
        reason = "its local memory would have {error.size} bytes"
    return DeviceError(f"{where}: {what} failed: {reason.format(**facts)}", notes=[note] if note else ())


def negative_size(where: str, size: int) -> DeviceError:
    """The error for a tensor that has a dimension of a negative size."""
    return DeviceError(f"{where}: a tensor would have a dimension of size {size}", notes=[_SHAPES])


_ASSERTION, _ARGUMENTS = "assertion failed", "arguments do not fit each other"
_CHECKS = f"{_ARGUMENTS}|shapes do not agree|out of range|division by zero|overflow|backend '"
_MESSAGE = re.compile(rf"(?:(.*?):(\d+):(\d+): )?(({_ASSERTION}|{_CHECKS}).*)", re.DOTALL)


def _failed_assertion(address: int, numbers: Sequence[int]) -> DevscopeError:
    """The lowering puts where the assertion stands in front of its message, see runtime_calls.py there.

    In messages of its own, ``{0}`` and ``{1}`` stand for ``numbers``.
    """
    text = ctypes.string_at(address).decode(errors="replace")
    match = _MESSAGE.fullmatch(text)
    if match is None:
        return ExecutionError(text)
    location = None if match[1] is None else SourceLocation(match[1], int(match[2]), int(match[3]))
    message = match[4]
    if match[5] == _ASSERTION:
        return ExecutionError(message, location)
    for position, number in enumerate(numbers):
        message = message.replace(f"{{{position}}}", str(number))
    return (InputError if match[5] == _ARGUMENTS else ExecutionError)(message, location)


def _device(spec: DeviceSpec, physical: Device) -> str:
    if physical.type == "cpu":
        return f"{spec.name} (host)"
    return physical.label if spec.name == physical.name else f"{spec.name} on {physical.label}"
