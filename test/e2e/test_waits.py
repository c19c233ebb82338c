"""The host waits for the command that it needs, not for all that was enqueued."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

import numpy as np
from opencl_functions import opencl_functions, opencl_queues

import devscope
from devscope.runtime.executable import Executable

_LAUNCH = (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)

TENSOR = "tensor<64xf32>"

# A chain on the device. Of its first value the host computes something, of which the device makes more.
PROGRAM = f"""
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%m: tensor<64x64xf32>, %x: {TENSOR})
    -> ({TENSOR}, {TENSOR}, {TENSOR}, {TENSOR}, tensor<64x64xf32>) {{
  %first = linalg.matvec {{device.scope = #dev}} ins(%m, %x : tensor<64x64xf32>, {TENSOR})
      outs(%x : {TENSOR}) -> {TENSOR}
  %second = linalg.matvec {{device.scope = #dev}} ins(%m, %first : tensor<64x64xf32>, {TENSOR})
      outs(%first : {TENSOR}) -> {TENSOR}
  %third = linalg.matvec {{device.scope = #dev}} ins(%m, %second : tensor<64x64xf32>, {TENSOR})
      outs(%second : {TENSOR}) -> {TENSOR}
  %h = math.absf %first {{device.scope = #host}} : {TENSOR}
  %d = math.sqrt %h {{device.scope = #dev}} : {TENSOR}
  %e = math.exp %m {{device.scope = #dev}} : tensor<64x64xf32>
  return %d, %first, %second, %third, %e : {TENSOR}, {TENSOR}, {TENSOR}, {TENSOR}, tensor<64x64xf32>
}}
"""


class Recorder:
    """Functions in place of the driver's that note launches, and for which of them the host waits."""

    def __init__(self, executable: Executable) -> None:
        self.table = opencl_functions(executable)
        self.launched: list[int] = []
        self.waited: list[int] = []
        self.launched_before: list[int] = []
        """For each wait, how many launches there were before."""
        self._keep: list[Any] = []
        self._launch = self._replace("clEnqueueNDRangeKernel", _LAUNCH, self.launch)
        self._wait = self._replace("clWaitForEvents", (c_uint32, c_void_p), self.wait)
        self._ask = self._replace("clGetEventInfo", (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p), self.ask)

    def _replace(self, name: str, parameters: tuple[Any, ...], function: Any) -> Any:
        type_ = ctypes.CFUNCTYPE(c_int32, *parameters)
        original, new = type_(getattr(self.table, name)), type_(function)
        self._keep.append(new)
        setattr(self.table, name, ctypes.cast(new, c_void_p).value)
        return original

    def launch(self, *arguments: Any) -> int:
        status = self._launch(*arguments)
        self.launched.append(c_void_p.from_address(arguments[-1]).value or 0)
        return status

    def wait(self, count: int, events: int) -> int:
        for event in (c_void_p * count).from_address(events):
            self._note(event or 0)
        return self._wait(count, events)

    def ask(self, event: int, *rest: Any) -> int:
        self._note(event)
        return self._ask(event, *rest)

    def _note(self, event: int) -> None:
        """A wait of which signals are heard asks again and again; after a while another thread waits."""
        if self.waited[-1:] != [event]:
            self.waited.append(event)
            self.launched_before.append(len(self.launched))


@contextmanager
def recorded(executable: Executable) -> Iterator[Recorder]:
    recorder = Recorder(executable)
    queues = opencl_queues(executable)
    before = [queue.cl for queue in queues]
    for queue in queues:
        queue.cl = ctypes.addressof(recorder.table)
    try:
        yield recorder
    finally:
        for queue, functions in zip(queues, before, strict=True):
            queue.cl = functions


def test_the_device_goes_on_while_values_go_to_the_host_and_back() -> None:
    rng = np.random.default_rng(88)
    m, x = rng.uniform(-0.2, 0.2, (64, 64)).astype(np.float32), rng.uniform(-1, 1, 64).astype(np.float32)
    with devscope.compile(PROGRAM, cache=False) as executable:
        executable(m, x)
        with recorded(executable) as recorder:
            d, first, second, third, e = executable(m, x)
    step = m.astype(np.float64) + np.eye(64)
    for value, expected in ((first, step @ x), (second, step @ step @ x), (third, step @ step @ step @ x)):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(d, np.sqrt(np.abs(first)), rtol=1e-5)
    np.testing.assert_allclose(e, np.exp(m), rtol=1e-5)
    # All values are in one arena, whose parts are used again: that alone is no reason to wait for what came last.
    last = recorder.launched[-1]
    before = [
        event
        for event, launches in zip(recorder.waited, recorder.launched_before, strict=True)
        if launches < len(recorder.launched)
    ]
    assert len(before) == 1, "one wait, for the first value"
    assert recorder.launched.index(before[0]) < len(recorder.launched) - 3
    assert last in recorder.waited
