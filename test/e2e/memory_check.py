"""Whether calls leave memory behind: counted by the C library on the host, by the runtime on devices."""

from __future__ import annotations

import ctypes
import gc

from program_case import Array

from devscope.runtime.executable import Executable

_CALLS = 24
#: Less than any allocation of compiled code.
_BYTES_PER_CALL = 64
#: A leak grows in each of them; what caches and other threads of the test process allocate now and then does not.
_ROUNDS = 4


class _Mallinfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


_mallinfo = ctypes.CDLL(None).mallinfo2
_mallinfo.restype = _Mallinfo


def _bytes_in_use() -> int:
    found = _mallinfo()
    return int(found.uordblks + found.hblkhd)


def assert_nothing_leaks(executable: Executable, entry: str, arrays: list[Array], only_host: bool) -> None:
    """Calls ``entry`` some more times. Drivers allocate too, so host memory counts only with ``only_host``."""
    for _ in range(4):
        executable.run(entry, *arrays)
    buffers, growth = executable.counters().driver_allocations, 0
    gc.disable()
    try:
        for _ in range(_ROUNDS):
            before = _bytes_in_use()
            for _ in range(_CALLS):
                executable.run(entry, *arrays)
            growth = _bytes_in_use() - before
            if growth < _CALLS * _BYTES_PER_CALL:
                break
    finally:
        gc.enable()
    # Freed buffers are used again, so that calls like earlier ones need no new ones from the driver.
    assert executable.counters().driver_allocations == buffers, "device buffers leak"
    if only_host:
        assert growth < _CALLS * _BYTES_PER_CALL, f"{growth / _CALLS} bytes leak in each call"
