"""What Python and the native runtime both know: the enumerations, constants and structs of ``abi.h``.

``abi.h`` says what they mean; a test compares the two.
"""

import ctypes
from enum import IntEnum
from typing import Any

ABI_VERSION = 10

Origin = IntEnum("Origin", "NONE RUNTIME DRIVER", start=0)
Operation = IntEnum("Operation", "ALLOC FREE COPY CONSTANT LAUNCH ASSERT LEND")
Code = IntEnum(
    "Code",
    "BAD_SLOT BAD_KERNEL BAD_ARGUMENT_COUNT BAD_CONSTANT NEGATIVE_SIZE OUT_OF_HOST_MEMORY ASSERTION_FAILED "
    "TOO_MUCH_LOCAL_MEMORY TOO_MANY_WORK_ITEMS BAD_LAUNCH_SIZE INTERRUPTED ENDED FORKED BAD_STATE",
)
Problem = IntEnum("Problem", "NONE FAILED NO_ARRAY OUT_SHAPE", start=0)


def struct(name: str, *fields: str | dict[str, Any]) -> type[ctypes.Structure]:
    """A struct of C. Words are fields of 64 bits: integers, and pointers, of which 0 is null."""
    members: list[tuple[str, Any]] = []
    for part in fields:
        members += dict.fromkeys(part.split(), ctypes.c_int64).items() if isinstance(part, str) else part.items()
    return type(name, (ctypes.Structure,), {"_fields_": members})


Error = struct("Error", "origin code operation slot detail size", {"numbers": ctypes.c_int64 * 2})
Block = struct("Block", "next previous size padding")
Buffer = struct("Buffer", "next previous call memory host size used arena offset")
Place = struct("Place", "offset bytes memory")
Arena = struct("Arena", "bytes separate whole places place_count")
FreeBuffer = struct("FreeBuffer", "handle bytes")
FreeList = struct("FreeList", "count capacity bytes limit entries")
Constant = struct("Constant", "data bytes")
State = struct("State", "slot kept next")
Out = struct("Out", "memory bytes")
Kernel = struct("Kernel", "handle argument_count sizes local_count")
Counters = struct("Counters", "launches allocations driver_allocations")
Device = struct(
    "Device",
    "driver state domain pending kernel_count kernels constants",
    {"free_list": FreeList},
    "live live_count",
    {"counters": Counters},
    "most_work_items most_local status reports unread",
)
Interpreter = struct(
    "Interpreter",
    "lock unlock handle_signals take_exception release acquire thread keep drop new_tuple set_item new_capsule",
    "memory list_size list_item list_cut list_append set_attribute address integer real",
    "new_array set_base copy copy_to number_of same_dtype value_of none",
    "not_implemented array_type integer_type real_type header main_thread",
)
Traffic = struct("Traffic", "copies bytes")
Context = struct(
    "Context",
    {"error": Error},
    "device_count devices constant_count constants traffic arenas calls",
    {"blocks": Block},
    "returned stop ended interpreter",
    {"raised": ctypes.c_int64 * 3},
    "run_tasks wait_apart threads out_count outs state_count states",
)
Value = struct(
    "Value",
    "dtype rank item_bytes is_scalar shape descriptor strides owner bytes kind number_type other_dtype",
    {"number": ctypes.c_double * 2},
)
PythonEntry = struct(
    "PythonEntry",
    "context call entry pointers argument_count arguments result_count results outs problem position",
)
