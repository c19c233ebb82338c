"""Device binaries of strangers, looked over before a driver sees them: SPIR-V and PTX.

Drivers are known to end the process when they are given a truncated module. This does not replace a validator
(`build_apart` asks one): it makes sure that there are whole instructions, whole functions, and the kernels
that the program's records name.
"""

import re
import struct
from collections.abc import Collection
from functools import lru_cache

_SPIRV_MAGIC = 0x07230203
_HEADER_WORDS = 5
_MOST_IDS = 1 << 22
_OP_ENTRY_POINT = 15
_OP_FUNCTION = 54
_OP_FUNCTION_END = 56

_PTX_HEAD = re.compile(
    r"(?:\s|//[^\n]*\n)*\.version\s+\d+\.\d+\s+\.target\s+sm_\d+\w*[^\n]*\s+\.address_size\s+64\b"
)
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$%]+)")


def problem_of_binary(kind: str, binary: bytes, kernels: Collection[str] = ()) -> str | None:
    """What is wrong with a binary of a target kind that should have certain kernels; None for unknown kinds."""
    look_over = {"opencl": _kernels_of_spirv, "cuda": _kernels_of_ptx}.get(kind)
    found = None if look_over is None else look_over(binary)
    if found is None or isinstance(found, str):
        return found
    missing = sorted(set(kernels).difference(found))
    return f"without the kernel '{missing[0]}', which the program has" if missing else None


def spirv_version(binary: bytes) -> str:
    """The version that a SPIR-V module says it has, ``1.4``."""
    return f"{binary[6]}.{binary[5]}"


# Each binary is looked over when it is read, when it is tried, and when it is built.
@lru_cache(maxsize=16)
def _kernels_of_spirv(binary: bytes) -> frozenset[str] | str:
    """The kernels of a module, or what is wrong with it."""
    count = len(binary) // 4
    if len(binary) % 4 or count < _HEADER_WORDS:
        return f"not a SPIR-V module: {len(binary)} bytes is not a possible length"
    words = struct.unpack(f"<{count}I", binary)
    if words[0] != _SPIRV_MAGIC:
        return f"not a SPIR-V module: it starts with {words[0]:#010x} where {_SPIRV_MAGIC:#010x} is expected"
    if words[3] > _MOST_IDS:
        return f"not a SPIR-V module: it has room for {words[3]} ids"
    at = _HEADER_WORDS
    open_functions = 0
    entries: set[str] = set()
    while at < count:
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > count:
            return f"not a SPIR-V module: the instruction at word {at} is cut off"
        if opcode == _OP_ENTRY_POINT:
            name, _, _ = binary[4 * (at + 3) : 4 * (at + length)].partition(b"\0")
            entries.add(name.decode(errors="replace"))
        open_functions += (opcode == _OP_FUNCTION) - (opcode == _OP_FUNCTION_END)
        at += length
    return "not a SPIR-V module: a function has no end" if open_functions else frozenset(entries)


def _kernels_of_ptx(binary: bytes) -> frozenset[str] | str:
    if not binary.isascii() or b"\0" in binary.rstrip(b"\0"):
        return "not PTX: it is no text"
    text = binary.decode()
    if _PTX_HEAD.match(text) is None:
        return "not PTX: it does not begin with a version, a target and an address size"
    if text.count("{") != text.count("}"):
        return "not PTX: a body has no end"
    return frozenset(_PTX_ENTRY.findall(text))
