"""The same programs on the second driver of this machine, if it has one; SPIR-V for drivers that want SPIR."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import references  # noqa: F401  (registers the cases)
from program_case import CASES
from test_programs import PROGRAMS, SEED, check_case

import devscope
from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.drivers.opencl_spir import find_translator, without_null_scalars

_OTHERS = [device.name for device in opencl_devices()[0][1:]]
#: These have something of everything; pocl takes seconds for each kernel.
_NAMES = ("softmax", "own_kernels", "matmul_tanh", "reduce_axes", "integer_arithmetic", "two_devices", "cnn")


@pytest.mark.skipif(not _OTHERS, reason="this machine has one OpenCL device")
@pytest.mark.parametrize("name", _NAMES)
def test_program(name: str) -> None:
    text = (PROGRAMS / f"{name}.mlir").read_text()
    used = [f"opencl:{number}" for number in range(2) if f'"opencl", {number}' in text]
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    with devscope.compile(text, devices=dict.fromkeys(used, _OTHERS[-1])) as executable:
        for case in CASES[name]:
            check_case(executable, case, rng)


def module(*instructions: tuple[int, ...]) -> bytes:
    words = [0x07230203, 0x10400, 0, 9, 0]
    for opcode, *operands in instructions:
        words += [(1 + len(operands)) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def test_null_scalars_become_constants() -> None:
    types = [(20, 1), (21, 2, 64, 0), (22, 3, 16), (23, 4, 2, 2)]
    nulls = [(46, 1, 5), (46, 2, 6), (46, 3, 7), (46, 4, 8)]
    plain = [(42, 1, 5), (43, 2, 6, 0, 0), (43, 3, 7, 0), (46, 4, 8)]
    assert without_null_scalars(module(*types, *nulls)) == module(*types, *plain)


def test_the_translator_is_that_of_the_drivers_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert find_translator("OpenCL 3.0 PoCL 3.1  Linux, SPIR, LLVM 15.0.6, SLEEF") == "/bin/llvm-spirv-15"
    assert find_translator("OpenCL 3.0 LINUX") is None
