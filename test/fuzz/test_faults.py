"""A thousand calls that fail, of memory or of the driver: each is one typed error, and nothing grows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import search_path  # noqa: F401
from part_faults import Faults, failing_driver, failing_malloc

import devscope
from devscope.errors import DeviceError

FAILURES = 1000

# Data goes to two devices and back, in a loop whose size the compiler does not know.
PROGRAM = """
#one = #device.scope<"opencl", 0 : i64, "", "">
#two = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %steps: index) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %x) -> (tensor<?x8xf32>) {
    %1 = linalg.matmul {device.scope = #one} ins(%a, %w : tensor<?x8xf32>, tensor<8x8xf32>)
        outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
    %2 = math.tanh %1 {device.scope = #two} : tensor<?x8xf32>
    %3 = math.absf %2 : tensor<?x8xf32>
    scf.yield %3 : tensor<?x8xf32>
  }
  return %0 : tensor<?x8xf32>
}
"""


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_failing_calls() -> None:
    rng = np.random.default_rng(0)
    faults, w = Faults(), rng.uniform(-1, 1, (8, 8)).astype(np.float32)
    devices = {"opencl:0": "opencl:0", "opencl:1": "opencl:0"}
    failed = before = handles = 0
    with (
        failing_malloc(faults),
        devscope.compile(PROGRAM, devices=devices, storage="dynamic", cache=False) as executable,
        failing_driver(executable, faults),
    ):
        for number in range(20 * FAILURES):
            if failed == FAILURES // 5:
                before, handles = _resident(), len(os.listdir("/proc/self/fd"))
            if failed == FAILURES:
                break
            # Other sizes than the last time, so that memory is allocated.
            x = rng.uniform(-1, 1, (1 + number % 37, 8)).astype(np.float32)
            faults.arm(("malloc", "buffers", "driver", "driver")[number % 4], int(rng.integers(12)), 2)
            try:
                executable(x, w, 3)
            except DeviceError:
                failed += 1
            assert not any(executable.counters().live.values())
        faults.arm("", -1)
        assert failed == FAILURES
        assert _resident() - before < 8 << 20
        assert len(os.listdir("/proc/self/fd")) == handles
        for _ in range(3):
            wanted = np.abs(np.tanh(x @ w))
            np.testing.assert_allclose(executable(x, w, 1), wanted, rtol=1e-5, atol=1e-6)


def test_every_call_of_the_driver_may_fail() -> None:
    faults = Faults()
    with devscope.compile(PROGRAM, devices={"opencl:1": "opencl:0"}, cache=False) as executable:
        x, w = np.ones((3, 8), np.float32), np.eye(8, dtype=np.float32)
        wanted = executable(x, w, 1)
        with failing_driver(executable, faults):
            faults.arm("driver", -1)
            executable(x, w, 1)
            errors = 0
            for at in range(faults.count):
                faults.arm("driver", at)
                try:
                    np.testing.assert_array_equal(executable(x, w, 1), wanted)  # a flush is not needed
                except DeviceError as error:
                    errors += "failed: out of resources (OpenCL error -5)" in error.message
            assert errors > 20
