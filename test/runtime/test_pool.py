"""The threads of the process, as programs use them; test_sanitizers.py has more tests of the pool itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_fork
from handmade import add_program, program, symbol, vector

from devscope.errors import DeviceError, InputError, OptionError
from devscope.runtime import devices, threads
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry, TensorSpec

# work(n, rounds): n tasks; each writes rounds, which it counts, to its place.
HOST = """
declare void @devscope_run_tasks(ptr, ptr, i64)

define internal void @task(ptr %environment, i64 %number) {
entry:
  %memory = load ptr, ptr %environment
  %q = getelementptr i64, ptr %environment, i64 1
  %rounds = load i64, ptr %q
  %p = getelementptr i64, ptr %memory, i64 %number
  store i64 0, ptr %p
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  store volatile i64 %next, ptr %p
  %more = icmp slt i64 %next, %rounds
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

define void @_mlir_ciface_devscope_entry_work(ptr %result, ptr %n, ptr %rounds) {
  %count = call i64 @scalar(ptr %n)
  %r = call i64 @scalar(ptr %rounds)
  %bytes = mul i64 %count, 8
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  %environment = alloca { ptr, i64 }
  store ptr %memory, ptr %environment
  %q = getelementptr i64, ptr %environment, i64 1
  store i64 %r, ptr %q
  call void @devscope_run_tasks(ptr @task, ptr %environment, i64 %count)
  call void @give_vector(ptr %result, ptr %memory, i64 %count)
  ret void
}
"""
I64 = TensorSpec("i64", [], True)
ENTRIES = {"work": Entry(symbol("work"), [I64, I64], [vector("i64")])}


@pytest.fixture
def exe() -> Iterator[Executable]:
    with Executable(program(HOST, ENTRIES), threads=3) as executable:
        yield executable


def is_right(exe: Executable, n: int, rounds: int = 100) -> bool:
    return bool(np.array_equal(exe(n, rounds), np.full(n, rounds)))


def thread_total() -> int:
    return len(os.listdir("/proc/self/task"))


def test_numbers_of_threads() -> None:
    shared = program(HOST, ENTRIES)
    before = thread_total()
    for wanted in (1, 2, 8, 64, 5):
        with Executable(shared, threads=wanted) as exe:
            assert exe.threads == wanted
            assert all(is_right(exe, n) for n in (0, 1, 2, 7, 300))
    assert thread_total() - before <= 63


def test_calls_at_once(exe: Executable) -> None:
    """Several executables, some of which are closed while others work."""
    shared = program(HOST, ENTRIES)

    def work(seed: int) -> bool:
        with Executable(shared, threads=1 + seed) as own:
            return all(is_right((own, exe)[n % 2], 1 + n % 50, n) for n in range(1, 300))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_forks(exe: Executable) -> None:
    assert is_right(exe, 50)
    assert in_fork(lambda: [is_right(exe, n) for n in (1, 50)]) == "[True, True]"
    assert in_fork(lambda: in_fork(lambda: is_right(exe, 50))) == "True"
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(is_right, exe, 1000, 100000)
        assert in_fork(lambda: is_right(exe, 50)) == "True"
        assert call.result(60)
    assert is_right(exe, 50)


def test_interrupts(exe: Executable) -> None:
    """Between tasks; the handler may call the program, and may fork."""
    seen: list[object] = []

    def handle(*_: object) -> None:
        seen.append(is_right(exe, 20))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.08)
            start = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                exe(1 << 20, 100000)
            assert time.monotonic() - start < 10
            assert is_right(exe, 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [True] * 3


def test_a_handler_that_forks(exe: Executable) -> None:
    """The new process does not have the threads that were at tasks: its call fails, if any were."""
    parent, children = os.getpid(), list[int]()

    def handle(*_: object) -> None:
        children.append(os.fork())

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.04)
        status = 1
        try:
            assert is_right(exe, 20000, 100000)  # 0.3 s with two cores
            assert is_right(exe, 9)
            status = 0
        except DeviceError as error:
            status = 0 if "forked in the middle of a call" in str(error) and is_right(exe, 9) else 2
        finally:
            if os.getpid() != parent:
                os._exit(status)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [os.waitpid(child, 0)[1] for child in children] == [0]


def test_every_thread_has_its_turn() -> None:
    """Also beside more threads than instances, which take back at once what they have given back."""
    ended = False

    def work() -> None:
        while not ended:
            exe(10, 10)

    with Executable(program(HOST, ENTRIES), threads=1) as exe, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(work) for _ in range(8)]
        assert all(is_right(exe, 20) for _ in range(50))
        ended = True
        for call in calls:
            call.result(60)


def test_quiet_when_idle(exe: Executable) -> None:
    assert is_right(exe, 100)
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.02


PROGRAM = """
import sys, threading
sys.path.insert(0, {folder!r})
from test_pool import ENTRIES, HOST, is_right
from handmade import program
from devscope.runtime.executable import Executable
exe = Executable(program(HOST, ENTRIES), threads=4)
def work():
    while True:
        exe(100, 1000)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(100):
    assert is_right(exe, 100)
"""


def test_the_end_of_the_interpreter() -> None:
    """While daemon threads have jobs, and workers are awake."""
    text = PROGRAM.format(folder=str(Path(__file__).parent))
    for _ in range(2):
        process = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("value", ["0", "-1", "two", "1025", "1.5", " 2", "9" * 5000])
def test_bad_environment(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DEVSCOPE_THREADS", value)
    with pytest.raises(InputError, match=r"DEVSCOPE_THREADS: .* is not a number of threads"):
        threads.thread_count()
    assert threads.thread_count(2) == 2


@pytest.mark.parametrize("value", [0, -1, 1025, "2", 1.0, True])
def test_bad_number(value: Any) -> None:
    with pytest.raises(OptionError, match="is not a number of threads"):
        Executable(program(HOST, ENTRIES), threads=value)


def test_default_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DEVSCOPE_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(threads, "_GROUPS", tmp_path)
    monkeypatch.setattr(threads, "_OWN_GROUPS", own := tmp_path / "own")
    assert threads.thread_count() == 8
    own.write_text("0::/a/b\n")
    for text, count in (("max 100000", 8), ("250000 100000", 3), ("1000 100000", 1), ("odd", 8)):
        (tmp_path / "cpu.max").write_text(text)
        assert threads.thread_count() == count
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "cpu.max").write_text("max 100000")
    (tmp_path / "a" / "cpu.max").write_text("400000 100000")
    assert threads.thread_count() == 4
    own.write_text("3:cpuset:/\n2:cpu,cpuacct:/c\n0::/\n")
    assert threads.thread_count() == 8
    (tmp_path / "cpu,cpuacct").mkdir()
    for quota, count in (("-1", 8), ("600000", 6)):
        (tmp_path / "cpu,cpuacct" / "cpu.cfs_quota_us").write_text(quota)
        (tmp_path / "cpu,cpuacct" / "cpu.cfs_period_us").write_text("100000")
        assert threads.thread_count() == count
    monkeypatch.setenv("DEVSCOPE_THREADS", "5")
    assert threads.thread_count() == 5


def test_cores_that_devices_take(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    monkeypatch.delenv("DEVSCOPE_THREADS", raising=False)
    monkeypatch.setattr(threads, "_cores", lambda: 8)
    add = add_program()
    for cores, count in [
        (None, 8),
        ({"opencl:0": 3}, 5),
        ({"opencl:0": 9}, 1),
        ({"opencl:0": 1, "cpu:0": 4}, 3),
        ({"cpu:0": 64, "opencl:1": 5}, 8),
        ({"cpu:0": "2", "opencl:0": -3}, 8),
        ([3], 8),
    ]:
        add.report = {"cores": cores}
        with Executable(add) as exe:
            assert exe.threads == count
    with Executable(add, threads=6) as exe:
        assert exe.threads == 6
    unit = next(iter(devices.list_devices()[1:])).name + ".0"
    if (found := devices.resolve_devices({"opencl:0": "opencl"}, {"opencl:0": unit})["opencl:0"]).cores:
        add.report = {}
        with Executable(add, {"opencl:0": found.name}) as exe:
            assert exe.threads == 7
