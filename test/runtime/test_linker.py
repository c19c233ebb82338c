"""Loading host code into processes whose memory is crowded."""

import ctypes
import mmap

import numpy as np
from forks import in_fork

import devscope
from devscope.runtime.executable import Executable

PROGRAM = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
NORESERVE = 0x4000
"""MAP_NORESERVE of Linux, which Python 3.11's mmap lacks."""
GAP = 2 << 30
"""Bytes, more than what an offset of 32 bits reaches."""


def _crowd(holes: int) -> None:
    """Leave free memory in small pieces only, each ``GAP`` from the next.

    Sections of an object that are placed one by one would be too far apart (LLVM's RuntimeDyldELF asserts).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    take = ctypes.CFUNCTYPE(pointer, pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)(
        ("mmap", libc)
    )
    give = ctypes.CFUNCTYPE(ctypes.c_int, pointer, size)(("munmap", libc))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    failed = ctypes.c_void_p(-1).value

    def reserve(count: int) -> int:
        address = take(None, count, 0, flags, -1, 0)
        assert address not in (None, failed), "no memory addresses"
        return address

    base = reserve(2 * GAP * (holes + 1))
    for count in (1 << 24, 1 << 20, 1 << 17, 1 << 14, 1 << 12):
        while (address := reserve(count)) > base:  # the holes that there were
            pass
        give(address, count)
    for number in range(holes):
        give(base + 2 * GAP * number + GAP, 1 << (12 + number % 6))


def test_code_and_data_in_crowded_memory() -> None:
    program = devscope.compile(PROGRAM).program
    x = np.linspace(-3, 3, 100, dtype=np.float32)

    def load_again() -> str:
        _crowd(holes=40)
        loaded = [Executable(program) for _ in range(8)]
        for each in loaded:
            np.testing.assert_allclose(each(x), np.exp(x), rtol=1e-6)
        return "right"

    assert in_fork(load_again) == "right"
