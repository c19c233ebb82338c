"""A structural check of SPIR-V modules.

Drivers are known to end the process when they are given a truncated module, so what comes from a file or a
compiler is looked over first. This does not replace a validator: it makes sure that the module consists of
whole instructions and whole functions.
"""

from __future__ import annotations

import struct

from devscope.errors import DeviceError

MAGIC = 0x07230203
_HEADER_WORDS = 5
_OP_FUNCTION = 54
_OP_FUNCTION_END = 56


def check_spirv(binary: bytes, device: str) -> None:
    """Raises :class:`DeviceError`, naming ``device``, when ``binary`` is not a whole SPIR-V module."""
    if problem := _problem(binary):
        raise DeviceError(
            f"{device}: the device binary is not a SPIR-V module: {problem}",
            notes=["compile the program again for target 'opencl'"],
        )


def _problem(binary: bytes) -> str | None:
    count = len(binary) // 4
    if len(binary) % 4 or count < _HEADER_WORDS:
        return f"{len(binary)} bytes is not a possible length"
    words = struct.unpack(f"<{count}I", binary)
    if words[0] != MAGIC:
        return f"it starts with {words[0]:#010x} where {MAGIC:#010x} is expected"
    at = _HEADER_WORDS
    open_functions = 0
    while at < count:
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > count:
            return f"the instruction at word {at} is cut off"
        open_functions += (opcode == _OP_FUNCTION) - (opcode == _OP_FUNCTION_END)
        at += length
    return "a function has no end" if open_functions else None
