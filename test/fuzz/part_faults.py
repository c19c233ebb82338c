"""The n-th allocation fails, the n-th call of a driver fails: one typed error, and the next call is right.

Buffers, blocks and handles that a failing call has made are given back: `check` counts them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from opencl_functions import opencl_functions, opencl_queues
from outcome import Outcome, from_error
from part_programs import Trial, compiled, trial

from devscope.errors import DevscopeError
from devscope.runtime import linker
from devscope.runtime.drivers.opencl_api import OpenCLLibrary
from devscope.runtime.executable import Executable

MOST = 12
"""Places at which faults are put into one program, of each kind."""

_POINTER, _SIZE = c_void_p, ctypes.c_size_t
_WAIT = (c_uint32, _POINTER, _POINTER)
# Parameters of the functions that return a status. Those that only release things are left alone.
_STATUS: dict[str, tuple[Any, ...]] = {
    "clEnqueueWriteBuffer": (_POINTER, _POINTER, c_uint32, _SIZE, _SIZE, _POINTER, *_WAIT),
    "clEnqueueReadBuffer": (_POINTER, _POINTER, c_uint32, _SIZE, _SIZE, _POINTER, *_WAIT),
    "clEnqueueCopyBuffer": (_POINTER, _POINTER, _POINTER, _SIZE, _SIZE, _SIZE, *_WAIT),
    "clSetKernelArg": (_POINTER, c_uint32, _SIZE, _POINTER),
    "clEnqueueNDRangeKernel": (_POINTER, _POINTER, c_uint32, _POINTER, _POINTER, _POINTER, *_WAIT),
    "clEnqueueBarrierWithWaitList": (_POINTER, *_WAIT),
    "clFlush": (_POINTER,),
    "clFinish": (_POINTER,),
    "clWaitForEvents": (c_uint32, _POINTER),
}
_OUT_OF_RESOURCES = -5
_ALLOCATION_FAILURE = -4


class Faults:
    """Counts calls; the one with number ``at``, and ``length - 1`` after it, fail."""

    def __init__(self) -> None:
        self.count, self.at, self.length, self.kind = 0, -1, 1, ""
        self._keep: list[Any] = []

    def hit(self, kind: str) -> bool:
        if kind != self.kind:
            return False
        self.count += 1
        return self.at <= self.count - 1 < self.at + self.length

    def arm(self, kind: str, at: int, length: int = 1) -> None:
        self.kind, self.at, self.length, self.count = kind, at, length, 0

    def function(self, kind: str, address: int, result: Any, types: tuple[Any, ...], failed: Any) -> int:
        """The address of a function that does what the one at ``address`` does, or fails."""
        original = ctypes.CFUNCTYPE(result, *types)(address)

        def call(*arguments: Any) -> Any:
            return failed(arguments) if self.hit(kind) else original(*arguments)

        replacement = ctypes.CFUNCTYPE(result, *types)(call)
        self._keep += [original, replacement]
        return ctypes.cast(replacement, c_void_p).value or 0


@contextmanager
def failing_malloc(faults: Faults) -> Iterator[None]:
    """For programs that are loaded inside."""
    original = linker._library_functions  # pyright: ignore[reportPrivateUsage]

    def functions(imported: frozenset[str]) -> dict[str, int]:
        found = dict(original(imported))
        found["malloc"] = faults.function("malloc", found["malloc"], c_void_p, (_SIZE,), lambda _: None)
        return found

    linker._library_functions = functions  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        linker._library_functions = original  # pyright: ignore[reportPrivateUsage]


@contextmanager
def failing_loader(faults: Faults) -> Iterator[None]:
    """The driver's functions that are called before a program runs."""
    status, create = OpenCLLibrary.status, OpenCLLibrary.create

    def failing_status(self: Any, name: str, *arguments: Any) -> int:
        if "Release" not in name and name != "clFinish" and faults.hit("load"):
            return _OUT_OF_RESOURCES
        return status(self, name, *arguments)

    def failing_create(self: Any, name: str, *arguments: Any, function: Any = None) -> int:
        if faults.hit("load"):
            from devscope.errors import DeviceError

            raise DeviceError(f"{name} failed: fault injected")
        return create(self, name, *arguments, function=function)

    OpenCLLibrary.status, OpenCLLibrary.create = failing_status, failing_create
    try:
        yield
    finally:
        OpenCLLibrary.status, OpenCLLibrary.create = status, create


@contextmanager
def failing_driver(executable: Executable, faults: Faults) -> Iterator[None]:
    """The functions that an executable calls while it runs."""
    queues = opencl_queues(executable)
    if not queues:
        yield
        return
    table = opencl_functions(executable)
    before = [queue.cl for queue in queues]
    for name, types in _STATUS.items():
        made = faults.function("driver", getattr(table, name), c_int32, types, lambda _: _OUT_OF_RESOURCES)
        setattr(table, name, made)

    def no_buffer(arguments: Any) -> None:
        c_int32.from_address(arguments[-1]).value = _ALLOCATION_FAILURE

    for name, types in (
        ("clCreateBuffer", (_POINTER, c_uint64, _SIZE, _POINTER, _POINTER)),
        ("clCreateSubBuffer", (_POINTER, c_uint64, c_uint32, _POINTER, _POINTER)),
    ):
        setattr(table, name, faults.function("buffers", getattr(table, name), c_void_p, types, no_buffer))
    if table.clSVMAlloc:
        svm = (_POINTER, c_uint64, _SIZE, c_uint32)
        table.clSVMAlloc = faults.function("buffers", table.clSVMAlloc, c_void_p, svm, lambda _: None)
    for queue in queues:
        queue.cl = ctypes.addressof(table)
    try:
        yield
    finally:
        for queue, functions in zip(queues, before, strict=True):
            queue.cl = functions


def _handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def check(seed: int, folder: Path) -> Outcome:
    made = trial(seed)
    made.write(folder)
    rng = np.random.default_rng([seed, 2])
    faults = Faults()
    with failing_malloc(faults):
        try:
            executable = compiled(made.program.text, made.options)
            if _problem(made, executable):
                return Outcome("refused", "wrong without a fault, as the part 'programs' says")
        except DevscopeError as error:
            return from_error(error)
        trials = 0
        with executable:
            for attack in (_while_running, _while_loading):
                try:
                    outcome = attack(made, executable, faults, rng)
                except DevscopeError as error:
                    return Outcome("wrong", f"after a fault: {error.message}")
                if outcome.kind != "right":
                    return outcome
                trials += outcome.trials
    return Outcome("right", trials=trials)


def _while_running(made: Trial, executable: Executable, faults: Faults, rng: np.random.Generator) -> Outcome:
    """The first call of an executable allocates, and so has a new one for each fault; every call has commands."""
    trials, before = 0, _handles()
    for kind, length in (("malloc", 2), ("buffers", 2)):
        with _again(executable) as first, failing_driver(first, faults):
            faults.arm(kind, -1)
            first(*made.calls[0])
        for at in _places(faults, rng):
            with _again(executable) as other, failing_driver(other, faults):
                if problem := _fault(made, other, faults, (kind, at, length)):
                    return problem
                trials += 1
    with failing_driver(executable, faults):
        faults.arm("driver", -1)
        executable(*made.calls[0])
        for at in _places(faults, rng):
            if problem := _fault(made, executable, faults, ("driver", at, 1)):
                return problem
            trials += 1
    if _handles() > before:
        return Outcome("wrong", f"{_handles() - before} descriptors are left")
    return Outcome("right", trials=trials)


def _places(faults: Faults, rng: np.random.Generator) -> list[int]:
    return sorted(int(at) for at in rng.permutation(faults.count)[:MOST])


def _again(executable: Executable) -> Executable:
    mapping = {name: device for name, device in executable.devices.items() if name != device}
    return Executable(executable.program, mapping, cache=None)


def _fault(made: Trial, executable: Executable, faults: Faults, fault: tuple[str, int, int]) -> Outcome | None:
    """A call in which a fault happens, and one after it. A fault may be harmless: then the result is right."""
    faults.arm(*fault)
    try:
        if problem := _problem(made, executable):
            return Outcome("wrong", f"with the fault {fault[:2]}: {problem}")
    except DevscopeError:
        pass
    except Exception as error:
        return Outcome("traceback", f"{fault[:2]}: {from_error(error).message}")
    faults.arm("", -1)
    if left := {name: count for name, count in executable.counters().live.items() if count}:
        return Outcome("wrong", f"after the fault {fault[:2]}: buffers are left: {left}")
    if problem := _problem(made, executable):
        return Outcome("wrong", f"after the fault {fault[:2]}: {problem}")
    return None


def _while_loading(made: Trial, executable: Executable, faults: Faults, rng: np.random.Generator) -> Outcome:
    """Loads the same program again and again while the driver fails."""
    trials = 1
    with failing_loader(faults):
        faults.arm("load", -1)
        _again(executable).close()
        for at in _places(faults, rng):
            trials += 1
            faults.arm("load", at)
            try:
                with _again(executable) as again:
                    again(*made.calls[0])
            except DevscopeError:
                pass
            except Exception as error:
                return Outcome("traceback", f"load {at}: {from_error(error).message}")
        faults.arm("", -1)
        with _again(executable) as again:
            if problem := _problem(made, again):
                return Outcome("wrong", f"after loading had failed: {problem}")
    return Outcome("right", trials=trials)


def _problem(made: Trial, executable: Executable) -> str | None:
    found = made.program.problem(executable(*made.calls[0]), made.runs[0])
    return found[1] if found else None
