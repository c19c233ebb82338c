"""Delays what an executable enqueues at random, to bring races to light.

The driver's functions in the executable's table are replaced by some that hold commands back: each waits for a
user event that another thread completes a little later, in any order. Queues stay in order; everything between
queues, and between queues and the host, that is not ordered by events then really happens in other orders.
"""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

from opencl_functions import opencl_functions, opencl_queues

from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.executable import Executable

_CONTEXT_OF_QUEUE = 0x1090
_LONGEST = 4e-4
"""Seconds that a command waits at most."""

# Types of the parameters in front of (number of events, events, event).
_COPY = (c_void_p, c_void_p, c_uint32, c_size_t, c_size_t, c_void_p)
_COMMANDS: dict[str, tuple[Any, ...]] = {
    "clEnqueueWriteBuffer": _COPY,
    "clEnqueueReadBuffer": _COPY,
    "clEnqueueCopyBuffer": (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t),
    "clEnqueueNDRangeKernel": (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p),
}


class DelayedQueues:
    """Functions to put in place of the driver's; ``delayed`` counts the commands that were held back."""

    def __init__(self, executable: Executable, seed: int) -> None:
        self.delayed = 0
        self._random = random.Random(seed)
        # Its own handle: the types of the parameters set here are not those that devscope sets.
        self._library = ctypes.CDLL(opencl_devices()[0][0].library.path)
        self._library.clCreateUserEvent.restype = c_void_p
        self._library.clCreateUserEvent.argtypes = [c_void_p, c_void_p]
        self._library.clSetUserEventStatus.argtypes = [c_void_p, c_int32]
        self._library.clReleaseEvent.argtypes = [c_void_p]
        self._library.clRetainEvent.argtypes = [c_void_p]
        self._library.clGetCommandQueueInfo.argtypes = [c_void_p, c_uint32, c_size_t, c_void_p, c_void_p]
        self._held: list[int] = []
        self._stop = False
        self._thread = threading.Thread(target=self._let_go, daemon=True)
        self._thread.start()
        self.table = opencl_functions(executable)
        self._keep: list[Any] = []
        for name, types in _COMMANDS.items():
            self._replace(name, types)

    def close(self) -> None:
        """Lets go of everything and ends the thread."""
        self._stop = True
        self._thread.join()

    def _replace(self, name: str, types: tuple[Any, ...]) -> None:
        parameters = (*types, c_uint32, c_void_p, c_void_p)
        original = ctypes.CFUNCTYPE(c_int32, *parameters)(getattr(self.table, name))
        function = ctypes.CFUNCTYPE(c_int32, *parameters)(self._delay(original))
        self._keep += [original, function]
        setattr(self.table, name, ctypes.cast(function, c_void_p).value)

    def _delay(self, original: Any) -> Callable[..., int]:
        def enqueue(queue: int, *rest: Any) -> int:
            *middle, count, events, event = rest
            if self._random.random() < 0.3:
                time.sleep(self._random.uniform(0, _LONGEST))
                return original(queue, *rest)
            before = list((c_void_p * count).from_address(events)) if count else []
            gate = self._gate(queue)
            array = (c_void_p * (count + 1))(*before, gate)
            self._held.append(gate)  # before the call, which may block until the gate opens
            self.delayed += 1
            status = original(queue, *middle, count + 1, ctypes.addressof(array), event)
            self._library.clReleaseEvent(gate)
            return status

        return enqueue

    def _gate(self, queue: int) -> int:
        context = c_void_p()
        self._library.clGetCommandQueueInfo(queue, _CONTEXT_OF_QUEUE, 8, ctypes.byref(context), None)
        gate = self._library.clCreateUserEvent(context, None)
        self._library.clRetainEvent(gate)  # one for the thread that opens it, one for the command
        return gate

    def _let_go(self) -> None:
        order = random.Random(0)
        while self._held or not self._stop:
            time.sleep(order.uniform(0, _LONGEST))
            if self._held:
                gate = self._held.pop(order.randrange(len(self._held)))
                self._library.clSetUserEventStatus(gate, 0)
                self._library.clReleaseEvent(gate)


@contextmanager
def delayed_queues(executable: Executable, seed: int) -> Iterator[DelayedQueues]:
    """Everything that ``executable`` enqueues is delayed while the block runs."""
    delays = DelayedQueues(executable, seed)
    queues = opencl_queues(executable)
    before = [queue.cl for queue in queues]
    for queue in queues:
        queue.cl = ctypes.addressof(delays.table)
    try:
        yield delays
    finally:
        delays.close()
        for queue, functions in zip(queues, before, strict=True):
            queue.cl = functions
