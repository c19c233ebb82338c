"""Calls like earlier ones take nothing new: no memory, no buffers, no builds; ten thousand of them do not grow."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

CALLS = 10_000
WARM_UP = 50

#: Host, device, a loop that reads back in every iteration, and results of both.
PROGRAM = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>, %n: index)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %h = math.tanh %y : tensor<8x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h) -> (tensor<8x16xf32>) {
    %b = arith.addf %a, %y {device.scope = #dev} : tensor<8x16xf32>
    %c = math.sin %b : tensor<8x16xf32>
    scf.yield %c : tensor<8x16xf32>
  }
  return %y, %r : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def reference(x: Any, w: Any, n: int) -> tuple[Any, Any]:
    y = x.astype(np.float64) @ w.astype(np.float64)
    h = np.tanh(y)
    for _ in range(n):
        h = np.sin(h + y)
    return y, h


def assert_close(values: Iterable[Any], expected: Iterable[Any]) -> None:
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return devscope.compile(PROGRAM, cache=False)


def test_ten_thousand_calls(executable: Executable) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 32), np.float32) / 8
    w = rng.standard_normal((32, 16), np.float32)
    expected = reference(x, w, 3)
    results: Any = ()  # kept during the next call, as below
    for _ in range(WARM_UP):
        results = executable(x, w, 3)
    executable.reset_counters()
    before = resident_bytes()
    for number in range(CALLS):
        results = executable(x, w, 3)
        if number % 1000 == 0:
            assert_close(results, expected)
    counters = executable.counters()
    assert counters.allocations["cpu:0"] >= CALLS
    assert counters.allocations["opencl:0"] == 0  # its buffers have places
    assert not any(counters.driver_allocations.values())
    assert counters.builds == 0
    assert not any(counters.live.values())
    assert resident_bytes() - before < 4 << 20


def test_results_that_are_kept_stay_as_they_are(executable: Executable) -> None:
    """Memory of a result is used again only when nothing refers to it, not even a view."""
    x, w = np.ones((8, 32), np.float32), np.ones((32, 16), np.float32)
    first, _ = executable(x, w, 0)
    view = first[2:4, ::2].T
    del first
    for scale in range(2, 20):
        executable(x * scale, w, 0)
    np.testing.assert_array_equal(view, np.full((8, 2), 32, np.float32))
    other, _ = executable(x, w, 0)
    executable.close()
    np.testing.assert_array_equal(other, np.full((8, 16), 32, np.float32))


LARGE = """
func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %p = linalg.matmul ins(%x, %y : tensor<512x512xf32>, tensor<512x512xf32>)
    outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  %t = math.tanh %p : tensor<512x512xf32>
  %v = tensor.empty() : tensor<512xf32>
  %g = linalg.fill ins(%zero : f32) outs(%v : tensor<512xf32>) -> tensor<512xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<512x512xf32>) outs(%g : tensor<512xf32>) dimensions = [0]
  return %t, %s : tensor<512x512xf32>, tensor<512xf32>
}
"""


def test_results_and_scratch_take_no_fresh_pages() -> None:
    program = devscope.compile(LARGE, threads=2)
    x = np.full((512, 512), 1 / 32, np.float32)
    for _ in range(4):
        results = program(x, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        results = program(x, x)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 100  # each of the matrices has 256 pages
    np.testing.assert_allclose(results[1], 256, rtol=1e-5)
