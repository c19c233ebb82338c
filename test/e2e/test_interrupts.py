"""Signals end calls, on the host and in waits for devices, and so does the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope

SOURCE = """
#d = #device.scope<"opencl", 0 : i64, "", "">
#h = #device.scope<"cpu", 0 : i64, "", "">
func.func @scalar(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 {
    %0 = arith.mulf %a, %x : f32
    %1 = math.sin %0 : f32
    scf.yield %1 : f32
  }
  return %r : f32
}
// Its loops have no number of iterations that Python's ranges have.
func.func @odd_bounds(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c0 to %c10 step %c0 iter_args(%a = %x) -> f32 {
    %0 = arith.mulf %a, %x : f32
    scf.yield %0 : f32
  }
  %least = arith.constant -9223372036854775808 : i64
  %most = arith.constant 9223372036854775807 : i64
  %one = arith.constant 1 : i64
  %s = scf.for %i = %least to %most step %one iter_args(%a = %r) -> f32 : i64 {
    %0 = arith.mulf %a, %x : f32
    scf.yield %0 : f32
  }
  return %s : f32
}
func.func @ends(%lower: index, %upper: index, %x: i64) -> i64 {
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %lower to %upper step %c1 iter_args(%a = %x) -> i64 {
    %j = arith.index_cast %i : index to i64
    %0 = arith.xori %a, %j : i64
    %1 = arith.addi %0, %x : i64
    scf.yield %1 : i64
  }
  return %r : i64
}
func.func @condition(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.while (%i = %zero) : (i64) -> i64 {
    %c = arith.cmpi slt, %i, %n : i64
    scf.condition(%c) %i : i64
  } do {
  ^bb0(%i: i64):
    %p = arith.xori %i, %n : i64
    %q = arith.ori %p, %one : i64
    %s = arith.remui %q, %n : i64
    %t = arith.minui %s, %one : i64
    %j = arith.addi %i, %t : i64
    scf.yield %j : i64
  }
  return %r : i64
}
func.func @parallel(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<f32>
  memref.store %x, %m[] : memref<f32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    %v = memref.load %m[] : memref<f32>
    %s = math.sin %v : f32
    memref.store %s, %m[] : memref<f32>
    scf.reduce
  }
  %r = memref.load %m[] : memref<f32>
  return %r : f32
}
func.func @reduction(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%x) -> f32 {
    scf.reduce(%x : f32) {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      %u = math.sin %t : f32
      scf.reduce.return %u : f32
    }
  }
  return %r : f32
}
func.func @forall(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  %r = scf.forall (%i) in (%n) shared_outs(%o = %x) -> tensor<4xf32> {
    %k = arith.remui %i, %c4 : index
    %s = tensor.extract_slice %x[%k] [1] [1] : tensor<4xf32> to tensor<1xf32>
    %t = math.sin %s : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%k] [1] [1] : tensor<1xf32> into tensor<4xf32>
    }
  }
  return %r : tensor<4xf32>
}
func.func @tree(%n: index, %x: f32) -> f32 {
  %r = func.call @node(%n, %x) : (index, f32) -> f32
  return %r : f32
}
func.func private @node(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.cmpi sle, %n, %c0 : index
  %r = scf.if %end -> f32 {
    scf.yield %x : f32
  } else {
    %m = arith.subi %n, %c1 : index
    %a = func.call @node(%m, %x) : (index, f32) -> f32
    %b = func.call @node(%m, %a) : (index, f32) -> f32
    %c = math.sin %b : f32
    scf.yield %c : f32
  }
  return %r : f32
}
func.func @tensors(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?x?xf32> {
    %0 = math.sin %a {device.scope = #h} : tensor<?x?xf32>
    scf.yield %0 : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}
func.func @launches(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<64xf32> {
    %0 = math.sin %a {device.scope = #d} : tensor<64xf32>
    scf.yield %0 : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
func.func @kernel(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<4xf32>) attrs = {device.scope = #d} {
  ^bb0(%v: f32):
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> f32 {
      %s = math.sin %a : f32
      scf.yield %s : f32
    }
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LONG = 10**12
GRID = np.full((300, 300), 0.1, np.float32)
ROW = np.full(64, 0.1, np.float32)

#: Of each entry, arguments of a long call and of a short one. A kernel cannot be stopped: its end is waited for.
CALLS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "scalar": ((LONG, 0.5), (10, 0.5)),
    "condition": ((10**17,), (10,)),
    "parallel": ((LONG, 0.5), (10, 0.5)),
    "reduction": ((LONG, 0.5), (10, 0.5)),
    "forall": ((ROW[:4], LONG), (ROW[:4], 8)),
    "tree": ((80, 0.5), (5, 0.5)),
    "tensors": ((GRID, LONG), (GRID, 3)),
    "launches": ((ROW, LONG), (ROW, 3)),
    "kernel": ((ROW[:4], 2 * 10**7), (ROW[:4], 3)),
}


@pytest.fixture(scope="module")
def executable() -> Any:
    return devscope.compile(SOURCE, cache=False)


def interrupted_soon(number: int, call: Callable[[], Any], error: type[BaseException]) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    timer.start()
    try:
        with pytest.raises(error):
            call()
    finally:
        timer.join()


@pytest.mark.parametrize(("lower", "count"), [(-(2**63), 2**18 + 3), (-3, -7), (5, 0), (2**63 - 10, 9)])
def test_bounds_at_the_ends_of_the_range(executable: Any, lower: int, count: int) -> None:
    """A loop in parts ends where the loop does, though the end of a whole part may be beyond all numbers."""
    upper = lower + count
    expected = 1
    for index in range(lower, upper):
        expected = ((expected ^ index) + 1 + 2**63) % 2**64 - 2**63
    assert executable.run("ends", lower, upper, 1) == expected


@pytest.mark.parametrize("entry", CALLS)
def test_interrupt(executable: Any, entry: str) -> None:
    long, short = CALLS[entry]
    expected = executable.run(entry, *short)
    interrupted_soon(signal.SIGINT, lambda: executable.run(entry, *long), KeyboardInterrupt)
    assert not any(executable.counters().live.values())
    assert np.array_equal(executable.run(entry, *short), expected)


def test_handlers_run_and_may_call_the_program(executable: Any) -> None:
    found: list[float] = []

    def handler(number: int, frame: object) -> None:
        found.append(executable.run("scalar", 10, 0.5))
        raise TimeoutError

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        interrupted_soon(signal.SIGUSR1, lambda: executable.run("scalar", LONG, 0.5), TimeoutError)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert found == [executable.run("scalar", 10, 0.5)]


DAEMON = """
import sys, threading, numpy as np, devscope
executable = devscope.load(sys.argv[1])
started = threading.Event()

def work():
    while True:
        started.set()
        executable.run(sys.argv[2], *(np.load(path)[()] for path in sys.argv[3:]))

threading.Thread(target=work, daemon=True).start()
started.wait()
threading.Event().wait(0.2)
"""


@pytest.mark.not_emulated
@pytest.mark.parametrize("entry", ["scalar", "launches"])
@pytest.mark.parametrize("kind", ["long", "short"])
def test_calls_of_daemon_threads_end_with_the_process(
    executable: Any, tmp_path: Path, entry: str, kind: str
) -> None:
    executable.save(tmp_path / "program.dsx")
    paths = [tmp_path / f"{number}.npy" for number in range(2)]
    dtypes = (np.int64, np.float32) if entry == "scalar" else (np.float32, np.int64)
    for path, value, dtype in zip(paths, CALLS[entry][kind == "short"], dtypes, strict=True):
        np.save(path, np.asarray(value, dtype))
    command = [sys.executable, "-c", DAEMON, str(tmp_path / "program.dsx"), entry, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


AT_EXIT = """
import atexit, sys, numpy as np

def late():
    try:
        executable.run("scalar", np.int64(1), np.float32(1))
    except devscope.errors.InputError as error:
        print(error.message)

atexit.register(late)
import devscope
executable = devscope.load(sys.argv[1])
"""


@pytest.mark.not_emulated
def test_calls_at_exit_after_the_end_of_the_program(executable: Any, tmp_path: Path) -> None:
    executable.save(tmp_path / "program.dsx")
    command = [sys.executable, "-c", AT_EXIT, str(tmp_path / "program.dsx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the executable was closed\n", "")


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(SOURCE, encoding="utf-8")
    np.save(tmp_path / "x.npy", ROW[:4])
    np.save(tmp_path / "n.npy", np.asarray(10**10))
    command = [sys.executable, "-m", "devscope.cli.main", "run", str(path), "--entry", "kernel"]
    command += ["--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "n.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output, errors) == (130, "", "interrupted\n")
