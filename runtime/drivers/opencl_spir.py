"""SPIR-V for drivers that take SPIR instead, an earlier form of it as LLVM's bitcode: Debian's pocl is one.

The program ``llvm-spirv`` of the LLVM that a driver has makes SPIR of SPIR-V.
"""

import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from devscope.errors import DeviceError

BUILD_OPTIONS = b"-x spir -spir-std=1.2"
EXTENSION = "cl_khr_spir"

_SECONDS = 300
_LLVM = re.compile(r"\bLLVM (\d+)\.")

_HEADER_WORDS = 5
_TYPE_BOOL, _TYPE_INT, _TYPE_FLOAT = 20, 21, 22
_FALSE, _CONSTANT, _NULL = 42, 43, 46


def find_translator(platform_version: str) -> str | None:
    """Path of ``llvm-spirv`` for the LLVM that a platform says it has; None if there is none."""
    found = _LLVM.search(platform_version)
    return shutil.which(f"llvm-spirv-{found[1]}") if found is not None else None


def to_spir(translator: str, binary: bytes) -> bytes:
    """Raises DeviceError with what the translator says."""
    with tempfile.TemporaryDirectory() as folder:
        module, result = Path(folder) / "kernels.spv", Path(folder) / "kernels.bc"
        module.write_bytes(without_null_scalars(binary))
        command = [translator, "-r", "-o", str(result), str(module)]
        process = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        if process.returncode == 0:
            return result.read_bytes()
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    raise DeviceError(f"{translator} failed: {lines[0] if lines else f'status {process.returncode}'}")


def without_null_scalars(binary: bytes) -> bytes:
    """Numbers that are 0 become OpConstant or OpConstantFalse: old translators know no OpConstantNull of them."""
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    made, at = list(words[:_HEADER_WORDS]), _HEADER_WORDS
    sizes: dict[int, int] = {}
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        instruction = words[at : at + length]
        if opcode in (_TYPE_INT, _TYPE_FLOAT):
            sizes[instruction[1]] = -(-instruction[2] // 32)
        elif opcode == _TYPE_BOOL:
            sizes[instruction[1]] = 0
        elif opcode == _NULL and instruction[1] in sizes:
            size = sizes[instruction[1]]
            opcode = _CONSTANT if size else _FALSE
            instruction = ((3 + size) << 16 | opcode, *instruction[1:], *[0] * size)
        made.extend(instruction)
        at += length
    return struct.pack(f"<{len(made)}I", *made)
