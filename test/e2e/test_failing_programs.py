"""Programs that cannot finish: no memory, sizes that make no sense, assertions. One exception, nothing left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import DeviceError, DevscopeError, ExecutionError
from devscope.runtime.executable import Executable

CALLS = 200
DEFAULTS = ["cpu:0", "opencl:0"]

# What main makes depends on its arguments only, so that a call that fails can be followed by one that does not.
FILL = """
func.func @main(%n: index, %m: index) -> tensor<?x?xf32> {
  %c = arith.constant 1.0 : f32
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %f : tensor<?x?xf32>
}
"""

# The tensors before the assertion are live when it fails; one of them is in the other memory than the default.
ASSERT = """
#cpu = #device.scope<"cpu", 0 : i64, "", "">
#gpu = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?xf32>, %most: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = math.tanh %x {device.scope = #gpu} : tensor<?xf32>
  %1 = math.cos %0 {device.scope = #cpu} : tensor<?xf32>
  %2 = math.sin %1 : tensor<?xf32>
  %few = arith.cmpi sle, %n, %most : index
  cf.assert %few, "too many: \\"n\\" > most\\FF"
  %3 = arith.addf %0, %2 : tensor<?xf32>
  return %3 : tensor<?xf32>
}
"""


# What the computation gives is not used; it is there for its assertion.
ASSERT_ONLY = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %positive = arith.cmpf ogt, %in, %zero : f32
    cf.assert %positive, "not positive"
    linalg.yield %in : f32
  } -> tensor<?xf32>
  return %x : tensor<?xf32>
}
"""


@cache
def compiled(source: str, default: str = "cpu:0") -> Executable:
    return devscope.compile(source, default=default, cache=False)


def resident_bytes() -> int:
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_fails(error: type[DevscopeError], message: str | None, call: Callable[[], Any]) -> DevscopeError:
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
    return caught.value


def assert_fails_cleanly(executable: Executable, error: type[DevscopeError], *arguments: Any) -> None:
    """Many times, without more memory or more buffers than at first."""

    def fail(count: int) -> None:
        for _ in range(count):
            assert_fails(error, None, lambda: executable(*arguments))
            assert not any(executable.counters().live.values())

    fail(20)
    before, buffers = resident_bytes(), executable.counters().driver_allocations
    fail(CALLS)
    assert resident_bytes() - before < 8 << 20
    assert executable.counters().driver_allocations == buffers


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((1_000_000, 1_000_000), r"allocating 3.6 TiB failed: "),
        ((1 << 31, 1 << 31), r"allocating .* TiB failed: "),
        # Products that wrap around: to 0, to a few bytes, and past the sign.
        ((1 << 32, 1 << 32), r"allocating .* TiB failed: "),
        (((1 << 62) + 1, 4), r"allocating .* TiB failed: "),
        (((1 << 61) + 1, 1), r"allocating .* TiB failed: "),
        ((-5, 3), "a tensor would have a dimension of size -5"),
        ((3, -5), "a tensor would have a dimension of size -5"),
        ((-5, -3), "a tensor would have a dimension of size -5"),
        ((-(1 << 63), 2), "a tensor would have a dimension of size -9223372036854775808"),
        ((0, -5), "a tensor would have a dimension of size -5"),
        ((-5, 0), "a tensor would have a dimension of size -5"),
    ],
)
def test_sizes_that_no_tensor_can_have(default: str, sizes: tuple[int, int], message: str) -> None:
    executable = compiled(FILL, default)
    assert_fails(DeviceError, message, lambda: executable(*sizes))
    assert_fails_cleanly(executable, DeviceError, *sizes)
    assert np.array_equal(executable(2, 3), np.ones((2, 3), np.float32))
    assert executable(0, 3).shape == (0, 3)


@pytest.mark.parametrize("shape", ["1000000x1000000", "4503599627370496x4"])
@pytest.mark.parametrize("default", DEFAULTS)
def test_static_shape_beyond_memory(default: str, shape: str) -> None:
    static = FILL.replace("?x?", shape).replace("empty(%n, %m)", "empty()")
    executable = compiled(static, default)
    assert_fails(DeviceError, r":0 \(.*\): allocating .* TiB failed: ", lambda: executable(1, 1))
    assert_fails_cleanly(executable, DeviceError, 1, 1)


def test_negative_size_without_an_allocation() -> None:
    """What is returned here is the argument's memory, seen with another shape."""
    source = """
    func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
      %0 = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    """
    executable = compiled(source)
    x = np.arange(4, dtype=np.float32)
    assert_fails(DeviceError, "a tensor would have a dimension of size -2", lambda: executable(x, -2))
    assert_fails_cleanly(executable, DeviceError, x, -2)
    assert np.array_equal(executable(x, 3), x[:3])


@pytest.mark.parametrize("default", DEFAULTS)
def test_assertion(default: str, tmp_path: Path) -> None:
    path = tmp_path / "guarded.mlir"
    path.write_text(ASSERT, encoding="utf-8")
    executable = devscope.compile(path, default=default, cache=False)
    large, small = np.full(100_000, 0.5, np.float32), np.full(10, 0.5, np.float32)
    error = assert_fails(ExecutionError, None, lambda: executable(large, 100))
    assert error.message == 'assertion failed: too many: "n" > most\\xff'
    assert str(error.location) == f"{path}:11:3"
    assert_fails_cleanly(executable, ExecutionError, large, 100)
    expected = np.tanh(small) + np.sin(np.cos(np.tanh(small)))
    np.testing.assert_allclose(executable(small, 100), expected, rtol=1e-5)
    assert not any(executable.counters().live.values())


def test_saved_program_stops_too(tmp_path: Path) -> None:
    compiled(ASSERT).save(tmp_path / "guarded.dsx")
    executable = Executable.load(tmp_path / "guarded.dsx")
    x = np.zeros(10, np.float32)
    assert_fails(ExecutionError, "too many", lambda: executable(x, 9))
    assert executable(x, 10).shape == (10,)


def test_assertion_in_a_loop_and_in_an_elementwise_body() -> None:
    source = """
    #map = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<?xi64>, %steps: index) -> tensor<?xi64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c10 = arith.constant 10 : index
      %zero = arith.constant 0 : i64
      %0 = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %x) -> (tensor<?xi64>) {
        %few = arith.cmpi slt, %i, %c10 : index
        cf.assert %few, "loop"
        %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
            ins(%a : tensor<?xi64>) outs(%a : tensor<?xi64>) {
        ^bb0(%v: i64, %o: i64):
          %positive = arith.cmpi sgt, %v, %zero : i64
          cf.assert %positive, "body"
          linalg.yield %v : i64
        } -> tensor<?xi64>
        scf.yield %1 : tensor<?xi64>
      }
      return %0 : tensor<?xi64>
    }
    """
    executable = compiled(source)
    good, bad = np.ones(5, np.int64), np.array([1, 1, -1])
    assert np.array_equal(executable(good, 10), good)
    assert_fails(ExecutionError, "assertion failed: loop", lambda: executable(good, 11))
    assert_fails(ExecutionError, "assertion failed: body", lambda: executable(bad, 1))
    assert_fails_cleanly(executable, ExecutionError, bad, 1)
    assert np.array_equal(executable(bad, 0), bad)
    # A kernel cannot leave the program: there the assertion in the body is not checked.
    on_device = compiled(source, "opencl:0")
    assert np.array_equal(on_device(bad, 1), bad)
    assert_fails(ExecutionError, "assertion failed: loop", lambda: on_device(good, 11))


def test_failures_in_threads() -> None:
    executable = compiled(ASSERT)
    wrong: list[str] = []

    def work(seed: int) -> None:
        for index in range(CALLS // 4):
            x = np.zeros(10 + (index + seed) % 2, np.float32)
            try:
                found = executable(x, 10).size
            except ExecutionError:
                found = None
            if found != (10 if x.size == 10 else None):
                wrong.append(f"thread {seed}, call {index}: {found}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not any(executable.counters().live.values())


def test_what_is_there_for_an_assertion_only() -> None:
    exe = compiled(ASSERT_ONLY)
    x = np.array([1, 2, 3], np.float32)
    assert exe(x).tolist() == x.tolist()
    with pytest.raises(ExecutionError, match="not positive"):
        exe(-x)


def test_assertions_of_rows() -> None:
    """Indices of a gather, for rows of unknown length, on two threads: the first that does not hold is named."""
    source = """
    func.func @main(%table: tensor<?x?xf32>, %at: tensor<?xi64>) -> tensor<?x?xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i64
      %count = tensor.dim %at, %c0 : tensor<?xi64>
      %rows = tensor.dim %table, %c0 : tensor<?x?xf32>
      %columns = tensor.dim %table, %c1 : tensor<?x?xf32>
      %e = tensor.empty(%count, %columns) : tensor<?x?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%at : tensor<?xi64>) outs(%e : tensor<?x?xf32>) {
      ^bb0(%index: i64, %old: f32):
        %column = linalg.index 1 : index
        %row = arith.index_cast %index : i64 to index
        %below = arith.cmpi slt, %row, %rows : index
        cf.assert %below, "too large"
        %above = arith.cmpi sge, %index, %zero : i64
        cf.assert %above, "negative"
        %v = tensor.extract %table[%row, %column] : tensor<?x?xf32>
        linalg.yield %v : f32
      } -> tensor<?x?xf32>
      return %r : tensor<?x?xf32>
    }
    """
    executable = devscope.compile(source, threads=2)
    table = np.random.default_rng(0).standard_normal((50, 700)).astype(np.float32)
    at = np.random.default_rng(1).integers(0, 50, 3000)
    assert np.array_equal(executable(table, at), table[at])
    too_large, negative = at.copy(), at.copy()
    too_large[-1], negative[7] = 50, -1
    assert_fails_cleanly(executable, ExecutionError, table, too_large)
    assert_fails(ExecutionError, "too large", lambda: executable(table, too_large))
    assert_fails(ExecutionError, "negative", lambda: executable(table, negative))
    too_large[7] = -1  # before it
    assert_fails(ExecutionError, "negative", lambda: executable(table, too_large))
    # Rows without elements are not read.
    assert executable(table[:, :0].copy(), too_large).shape == (3000, 0)
    assert executable(table, at[:0]).shape == (0, 700)
