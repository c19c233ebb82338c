"""Each wait in the kernels of contractions is needed, and the emulator finds out that one is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import emulation
import numpy as np
import pytest
from emulation import emulated_cuda
from kernel_code import KernelCode, to_host

import devscope
from devscope.errors import DeviceError
from devscope.lowering.cuda import target
from devscope.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]

_WAITS = re.compile(r"^.*call void @llvm\.nvvm\.(?:barrier|cp\.async\.wait).*$", re.MULTILINE)


def program(element: str) -> str:
    matrix = f"tensor<64x64x{element}>"
    return f"""
    func.func @main(%a: {matrix}, %b: {matrix}) -> tensor<64x64xf32> {{
      %e = tensor.empty() : tensor<64x64xf32>
      %z = arith.constant 0.0 : f32
      %0 = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      %1 = linalg.matmul ins(%a, %b : {matrix}, {matrix}) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
      return %1 : tensor<64x64xf32>
    }}"""


def outcome(executable: Executable, a: Array, b: Array, expected: Array) -> str:
    try:
        return "right" if np.array_equal(executable(a, b), expected) else "wrong"
    except DeviceError as error:
        return "race" if "race" in str(error) else str(error)


@pytest.mark.parametrize(("arch", "element"), [("sm_75", "f32"), ("sm_80", "f16")])
def test_each_wait_is_needed(arch: str, element: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without: int | None = None
    waits = 0

    def to_host_without(text: str) -> KernelCode:
        nonlocal waits
        found = list(_WAITS.finditer(text))
        waits = len(found)
        if without is not None:
            text = text[: found[without].start()] + text[found[without].end() :]
        return to_host(text)

    monkeypatch.setattr(emulation, "to_host", to_host_without)
    monkeypatch.setattr(target, "_DEFAULT", arch)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (64, 64)).astype({"f16": np.float16, "f32": np.float32}[element]) for _ in "ab")
    expected = a.astype(np.float32) @ b.astype(np.float32)
    with emulated_cuda(tmp_path):
        with devscope.compile(program(element), default="cuda:0") as executable:
            np.testing.assert_array_equal(executable(a, b), expected)
        assert waits
        for without in range(waits):
            with devscope.compile(program(element), default="cuda:0") as executable:
                assert outcome(executable, a, b, expected) in ("race", "wrong"), f"wait {without} of {waits}"
