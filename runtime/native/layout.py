"""The structs that ``runtime.ll`` reads and writes, as ctypes sees them.

The order and the types of the fields are those of the ``%devscope.*`` types in ``runtime.ll``.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

ABI_VERSION = 4
"""Changes whenever a struct or a function of the native runtime changes. Stored in saved executables."""

HOST_HEADER = 32
"""Memory that an entry returns was allocated this many bytes before its ``allocated`` pointer."""


EVENTS = 64
"""Of this many last commands a queue keeps the events."""


RETURNED = 64
"""Most blocks of results that can be given back at the start of one call."""


class Kind(IntEnum):
    """Index into the native table of what a kind of device can do."""

    HOST = 0
    OPENCL = 1


class Origin(IntEnum):
    """Who refused a request."""

    NONE = 0
    RUNTIME = 1
    DRIVER = 2


class Operation(IntEnum):
    """What failed."""

    ALLOC = 1
    FREE = 2
    COPY = 3
    CONSTANT = 4
    LAUNCH = 5
    ASSERT = 6


class RuntimeCode(IntEnum):
    """Error codes of :attr:`Origin.RUNTIME`."""

    BAD_SLOT = 1
    BAD_KERNEL = 2
    BAD_ARGUMENT_COUNT = 3
    BAD_CONSTANT = 4
    NEGATIVE_SIZE = 5
    OUT_OF_HOST_MEMORY = 6
    ASSERTION_FAILED = 7
    TOO_MUCH_LOCAL_MEMORY = 8
    TOO_MANY_WORK_ITEMS = 9
    BAD_LAUNCH_SIZE = 10


class Error(ctypes.Structure):
    """The first failure of a call.

    ``detail``, depending on the operation: a byte count (or the negative size of a dimension), an index, or the
    address of an assertion's message. ``size``: what a launch asked for that cannot be.
    """

    origin: int
    code: int
    operation: int
    slot: int
    detail: int
    size: int
    _fields_ = [
        ("origin", ctypes.c_int64),
        ("code", ctypes.c_int64),
        ("operation", ctypes.c_int64),
        ("slot", ctypes.c_int64),
        ("detail", ctypes.c_int64),
        ("size", ctypes.c_int64),
    ]


class Block(ctypes.Structure):
    """Head of the list of host memory that the current call made; the native runtime alone uses it."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("previous", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("nothing", ctypes.c_int64),
    ]


class Context(ctypes.Structure):
    """The root: what ``@devscope_context`` points to."""

    error: Error
    device_count: int
    devices: int
    constant_count: int
    constants: int
    traffic: int
    calls: int
    blocks: Block
    returned_count: int
    returned: Any
    _fields_ = [
        ("error", Error),
        ("device_count", ctypes.c_int64),
        ("devices", ctypes.c_void_p),
        ("constant_count", ctypes.c_int64),
        ("constants", ctypes.c_void_p),
        ("traffic", ctypes.c_void_p),
        ("calls", ctypes.c_int64),
        ("blocks", Block),
        ("free_live", ctypes.c_void_p),
        ("stop", ctypes.c_int64 * 64),
        ("returned_count", ctypes.c_int64),
        ("returned", ctypes.c_void_p * RETURNED),
    ]


class Buffer(ctypes.Structure):
    """A buffer of an OpenCL device; handles of compiled code point to it. It comes from ``malloc``."""

    memory: int | None
    host: int | None
    size: int
    last: int
    foreign: int | None
    used: int
    arena: int | None
    offset: int
    views: int | None
    user: int | None
    _fields_ = [
        ("memory", ctypes.c_void_p),
        ("host", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("foreign", ctypes.c_void_p),
        ("used", ctypes.c_int64),
        ("arena", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("views", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
    ]


class FreeBuffer(ctypes.Structure):
    """A buffer that waits for reuse."""

    handle: int | None
    bytes: int
    _fields_ = [("handle", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class FreeList(ctypes.Structure):
    """The buffers of one device that wait for reuse, oldest first."""

    count: int
    capacity: int
    bytes: int
    limit: int
    entries: int | None
    _fields_ = [
        ("count", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        ("entries", ctypes.c_void_p),
    ]


class DeviceCounters(ctypes.Structure):
    """What happened on one device since it was last reset."""

    launches: int
    allocations: int
    driver_allocations: int
    _fields_ = [
        ("launches", ctypes.c_int64),
        ("allocations", ctypes.c_int64),
        ("driver_allocations", ctypes.c_int64),
    ]


class LiveBuffer(ctypes.Structure):
    """A buffer that host code has not freed, and the number of the call that made it."""

    handle: int | None
    call: int
    _fields_ = [("handle", ctypes.c_void_p), ("call", ctypes.c_int64)]


class LiveList(ctypes.Structure):
    """The live buffers of one device; ``entries`` comes from ``malloc``."""

    count: int
    capacity: int
    entries: int | None
    _fields_ = [("count", ctypes.c_int64), ("capacity", ctypes.c_int64), ("entries", ctypes.c_void_p)]


class Device(ctypes.Structure):
    """One virtual device of a program."""

    kind: int
    pending: int
    domain: int | None
    queue: int | None
    driver: int | None
    kernel_count: int
    kernels: int | None
    constants: int | None
    free_list: FreeList
    counters: DeviceCounters
    live: LiveList
    transfers: int | None
    shared: int
    issued: int
    completed: int
    events: Any
    polled: int
    most_work_items: int
    most_local: int
    asked: int
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("pending", ctypes.c_int32),
        ("domain", ctypes.c_void_p),
        ("queue", ctypes.c_void_p),
        ("driver", ctypes.c_void_p),
        ("kernel_count", ctypes.c_int64),
        ("kernels", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("free_list", FreeList),
        ("counters", DeviceCounters),
        ("live", LiveList),
        ("transfers", ctypes.c_void_p),
        ("shared", ctypes.c_int64),
        ("issued", ctypes.c_int64),
        ("completed", ctypes.c_int64),
        ("events", ctypes.c_void_p * EVENTS),
        ("polled", ctypes.c_int64),
        ("most_work_items", ctypes.c_int64),
        ("most_local", ctypes.c_int64),
        ("asked", ctypes.c_int64),
    ]


class Kernel(ctypes.Structure):
    """One kernel of one virtual device."""

    handle: int | None
    argument_count: int
    sizes: int | None
    _fields_ = [
        ("handle", ctypes.c_void_p),
        ("argument_count", ctypes.c_int64),
        ("sizes", ctypes.c_void_p),
    ]


class Constant(ctypes.Structure):
    """Host memory of one constant."""

    data: int | None
    bytes: int
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class Traffic(ctypes.Structure):
    """Copies from one slot to another."""

    copies: int
    bytes: int
    _fields_ = [("copies", ctypes.c_int64), ("bytes", ctypes.c_int64)]


class Place(ctypes.Structure):
    """Where a buffer with a known lifetime is in an arena."""

    offset: int
    bytes: int
    memory: int | None
    _fields_ = [("offset", ctypes.c_int64), ("bytes", ctypes.c_int64), ("memory", ctypes.c_void_p)]


class Arena(ctypes.Structure):
    """The storage of all such buffers in one memory."""

    bytes: int
    separate: int
    memory: int | None
    places: int | None
    place_count: int
    _fields_ = [
        ("bytes", ctypes.c_int64),
        ("separate", ctypes.c_int64),
        ("memory", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("place_count", ctypes.c_int64),
    ]
