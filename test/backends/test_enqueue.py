"""Code for devices that devscope drives: C functions that enqueue work on the device's queue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from test_codegen import compiler

import devscope
from devscope.backends import (
    Backend,
    Claimed,
    Code,
    CSource,
    DeviceBinary,
    Mlir,
    PythonCall,
    Row,
    register_backend,
)
from devscope.errors import BackendError, ExecutionError, LoweringError
from devscope.patterns import op, wildcard
from devscope.runtime.drivers import driver
from devscope.runtime.plugins import Runtime, register_runtime

if not (found := driver("opencl")) or not found.devices():
    pytest.skip("this machine has no OpenCL device", allow_module_level=True)

C = """
#include <stddef.h>
#include <stdint.h>
int32_t clEnqueueCopyBuffer(void *, void *, void *, size_t, size_t, size_t, uint32_t, const void *, void *);
int32_t NAME(void *queue, void *x, int64_t rows, int64_t columns, void *out, int64_t more, int64_t others) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      int32_t status =
          clEnqueueCopyBuffer(queue, x, out, 4 * (i * columns + j), 4 * (j * rows + i), 4, 0, NULL, NULL);
      if (status)
        return status;
    }
  return STATUS;
}
"""


def transposing(function: Claimed, status: int = 0) -> CSource:
    text = C.replace("NAME", f"{function.name}_c").replace("STATUS", str(status))
    return CSource(text, f"{function.name}_c", compiler, calls=["clEnqueueCopyBuffer"])


class Turner(Backend):
    """Transposes on OpenCL devices; ``code`` makes its code."""

    name = "turner"
    device_type: ClassVar[str] = "opencl"
    patterns = (Row("transpose", op("linalg.transpose", wildcard())),)
    code: Callable[[Claimed], Code] = staticmethod(transposing)

    def codegen(self, function: Claimed) -> Code:
        return type(self).code(function)


class TurnerRuntime(Runtime):
    name = "turner"

    def function(self, name: str) -> int:
        from devscope.runtime.drivers.opencl_device import OpenCLDevice

        device = driver("opencl").devices()[0]  # pyright: ignore[reportOptionalMemberAccess]
        assert isinstance(device, OpenCLDevice)
        return device.library.address(name)


@pytest.fixture(scope="module", autouse=True)
def registered(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    register_backend(Turner)
    register_runtime(TurnerRuntime)


TEXT = """func.func @main(%x: tensor<?x5xf32>) -> tensor<5x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x5xf32>
  %y = math.absf %x : tensor<?x5xf32>
  %e = tensor.empty(%n) : tensor<5x?xf32>
  %t = linalg.transpose ins(%y : tensor<?x5xf32>) outs(%e : tensor<5x?xf32>) permutation = [1, 0]
  %r = arith.addf %t, %t : tensor<5x?xf32>
  return %r : tensor<5x?xf32>
}"""


def compiled(**settings: object) -> devscope.Executable:
    return devscope.compile(TEXT, backends=["turner"], default="opencl:0", cache=False, **settings)  # pyright: ignore


def test_between_kernels(tmp_path: Path) -> None:
    """What it enqueues comes after the kernel before it, and before the one that follows; all stays there."""
    executable = compiled()
    executable.save(tmp_path / "p.dsx")
    for program in (executable, devscope.load(tmp_path / "p.dsx")):
        for rows in (300, 1, 0, 7):
            x = np.random.default_rng(rows).standard_normal((rows, 5)).astype(np.float32)
            program.reset_counters()
            np.testing.assert_array_equal(program(x), 2 * np.abs(x).T)
            assert program.counters().h2d.copies <= 1
            assert program.counters().d2h.copies <= 1
            assert set(program.counters().live.values()) == {0}


def test_calls_at_once() -> None:
    """A call beside another one has a queue of its own."""
    from concurrent.futures import ThreadPoolExecutor

    executable = compiled()
    given = [np.random.default_rng(n).standard_normal((40 + n, 5)).astype(np.float32) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for x, result in zip(given, pool.map(executable, given), strict=True):
            np.testing.assert_array_equal(result, 2 * np.abs(x).T)


def test_a_status_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turner, "code", staticmethod(lambda function: transposing(function, 5)))
    with pytest.raises(ExecutionError, match=r"backend 'turner': main_turner_transpose\w*_c failed with status 5"):
        compiled()(np.ones((2, 5), np.float32))


@pytest.mark.parametrize(
    "code", [PythonCall("f"), DeviceBinary(b"", "f"), Mlir("func.func @f()")], ids=lambda code: type(code).__name__
)
def test_code_that_is_none(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turner, "code", staticmethod(lambda _: code))
    with pytest.raises(BackendError, match="for a device of type 'opencl', where C functions enqueue work"):
        compiled()


def test_built_for_the_host() -> None:
    with pytest.raises(LoweringError, match="what it claimed is built for the host"):
        compiled(devices={"opencl:0": "cpu:0"})


def test_built_for_another_type() -> None:
    with pytest.raises(LoweringError, match=r"computes on devices of type 'opencl', but .* is built for 'cuda'"):
        compiled(devices={"opencl:0": "cuda:0"})
