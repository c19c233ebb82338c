"""One executable, called by several threads, and from within its own calls."""

from __future__ import annotations

import ctypes
import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from forks import in_fork
from handmade import add_program, program, symbol, vector

from devscope.errors import ExecutionError, InputError
from devscope.runtime import devices, object_file
from devscope.runtime.executable import Executable
from devscope.runtime.instance import Instance
from devscope.runtime.program import Entry, TensorSpec
from devscope.runtime.threads import short_turns


@pytest.fixture(autouse=True)
def _programs_may_yield(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_file, "ALLOWED", object_file.ALLOWED | {"sched_yield"})


# double(x) = x + x, through host memory of its own. meet(p, n): adds 1 to the counter at p, and gives 1 once it
# has seen n there, 0 after looking many times. fail(): stops.
HOST = """
declare i32 @sched_yield()
@text = private constant [2 x i8] c"x\\00"

define void @_mlir_ciface_devscope_entry_double(ptr %result, ptr %x) {
entry:
  %n = call i64 @size(ptr %x)
  %from = call ptr @data(ptr %x)
  %bytes = mul i64 %n, 4
  %copy = call ptr @devscope_host_alloc(i64 %bytes)
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %from, i64 %bytes, i1 false)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %copy, i64 %i
  %q = getelementptr float, ptr %memory, i64 %i
  %value = load float, ptr %p
  %twice = fadd float %value, %value
  store float %twice, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  call void @_mlir_memref_to_llvm_free(ptr %copy)
  call void @give_vector(ptr %result, ptr %memory, i64 %n)
  ret void
}

define void @_mlir_ciface_devscope_entry_meet(ptr %result, ptr %address, ptr %n) {
entry:
  %a = call i64 @scalar(ptr %address)
  %p = inttoptr i64 %a to ptr
  %wanted = call i64 @scalar(ptr %n)
  %old = atomicrmw add ptr %p, i64 1 seq_cst
  br label %look
look:
  %left = phi i64 [ 10000000, %entry ], [ %less, %wait ]
  %now = load atomic i64, ptr %p seq_cst, align 8
  %met = icmp sge i64 %now, %wanted
  %over = icmp eq i64 %left, 0
  %end = or i1 %met, %over
  br i1 %end, label %exit, label %wait
wait:
  %yielded = call i32 @sched_yield()
  %less = sub i64 %left, 1
  br label %look
exit:
  %value = zext i1 %met to i64
  call void @give_scalar(ptr %result, i64 %value)
  ret void
}

define void @_mlir_ciface_devscope_entry_fail() {
  %lost = call ptr @devscope_host_alloc(i64 100)
  call void @devscope_assert(i1 false, ptr @text)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
I64 = TensorSpec("i64", [], True)
ENTRIES = {
    "double": Entry(symbol("double"), [vector()], [vector()]),
    "meet": Entry(symbol("meet"), [I64, I64], [I64]),
    "fail": Entry(symbol("fail"), [], []),
}


@pytest.fixture
def host() -> Any:
    with Executable(program(HOST, ENTRIES)) as executable:
        yield executable


@contextmanager
def in_a_call(executable: Executable) -> Iterator[Instance]:
    """What a call of this thread has while it runs."""
    pool = executable._pool  # pyright: ignore[reportPrivateUsage]
    held: list[Instance] = []
    try:
        yield pool.take(held)
    finally:
        pool.give_back(held)


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [future.result(timeout=120) for future in [pool.submit(work, seed) for seed in range(count)]]


def test_host_programs_run_side_by_side(host: Executable) -> None:
    """Two calls each of which ends when the other one has begun."""
    counter = ctypes.c_int64()
    assert in_threads(2, lambda _: host.run("meet", ctypes.addressof(counter), 2)) == [1, 1]


def test_results_of_many_threads(host: Executable) -> None:
    def work(seed: int) -> bool:
        kept: list[tuple[Any, Any]] = []
        for size in range(1, 60):
            x = np.random.default_rng(seed * 100 + size).random(size * 7, np.float32)
            kept.append((x, host.run("double", x)))
            if size % 10 == 0:
                with pytest.raises(ExecutionError, match="x"):
                    host.run("fail")
        return all(np.array_equal(result, x + x) for x, result in kept)

    assert all(in_threads(6, work))
    counters = host.counters()
    assert counters.allocations["cpu:0"] == 6 * (59 * 2 + 5)
    host.reset_counters()
    assert host.counters().allocations["cpu:0"] == 0


def test_programs_with_devices_take_turns(device: Any) -> None:
    with Executable(add_program()) as add:

        def work(seed: int) -> bool:
            x = np.random.default_rng(seed).random(1000 + seed, np.float32)
            return all(np.array_equal(add(x, np.float32(n) * x), x + np.float32(n) * x) for n in range(20))

        assert all(in_threads(4, work))
        assert len(add._pool.instances) == 1  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("on_device", [False, True])
def test_calls_within_calls(device: Any, on_device: bool) -> None:
    """As a finalizer or a signal handler would do it: they must not wait for the call that they are in."""
    x = np.ones(10, np.float32)
    with Executable(add_program() if on_device else program(HOST, ENTRIES)) as exe:
        call = (lambda: exe.run("add", x, x)) if on_device else (lambda: exe.run("double", x))
        with in_a_call(exe), in_a_call(exe):
            assert np.array_equal(call(), x + x)
            exe.reset_counters()
        assert np.array_equal(call(), x + x)
        assert exe.counters().allocations["cpu:0"] == (1 if on_device else 2)


def test_close_waits_for_calls_of_other_threads(host: Executable) -> None:
    counter = ctypes.c_int64()
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(host.run("meet", ctypes.addressof(counter), 2)))
    thread.start()
    while counter.value == 0:
        pass
    closer = threading.Thread(target=host.close)
    closer.start()
    counter.value = 2
    closer.join(60)
    thread.join(60)
    assert results == [1]
    with pytest.raises(InputError, match="the executable was closed"):
        host.run("double", np.ones(3, np.float32))


def test_close_within_a_call() -> None:
    exe = Executable(program(HOST, ENTRIES))
    with in_a_call(exe) as instance:
        exe.close()
        with pytest.raises(InputError, match="the executable was closed"):
            exe.run("fail")
        (result,) = instance.run("double", [np.ones(3, np.float32)])
    assert result.tolist() == [2, 2, 2]


def test_threads_that_wait_are_told_of_the_end(device: Any) -> None:
    x = np.ones(10, np.float32)
    exe = Executable(add_program())
    errors: list[str] = []

    def work() -> None:
        try:
            exe(x, x)
        except InputError as error:
            errors.append(error.message)

    with in_a_call(exe):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        exe.close()
    for thread in threads:
        thread.join(60)
    assert errors == ["the executable was closed"] * 3


def test_an_idle_instance_that_another_thread_takes_first(host: Executable) -> None:
    """Between the look at the idle instances and the step that takes one."""
    pool = host._pool  # pyright: ignore[reportPrivateUsage]

    move: Any = pool._move  # pyright: ignore[reportPrivateUsage]
    lost = 3

    def contended(source: list[Instance], *others: Any) -> Any:
        nonlocal lost
        if lost and source is pool._idle:  # pyright: ignore[reportPrivateUsage]
            lost -= 1
            return None
        return move(source, *others)

    pool._move = contended  # pyright: ignore[reportPrivateUsage]
    assert np.array_equal(host.run("double", np.ones(3, np.float32)), [2, 2, 2])
    assert len(pool.instances) == 1


def test_exceptions_between_two_steps_lose_no_instance(host: Executable) -> None:
    """Handlers of signals run where functions begin and after calls, and may raise."""
    pool = host._pool  # pyright: ignore[reportPrivateUsage]
    modules = Executable.__call__.__code__.co_filename, type(pool).take.__code__.co_filename
    x = np.ones(3, np.float32)

    def raises_at(step: int) -> bool:
        def handler(frame: Any, event: str, _: Any) -> None:
            nonlocal step
            step -= event in ("call", "c_return") and frame.f_code.co_filename in modules
            if step < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(handler)
        try:
            host.run("double", x)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    steps = 0
    while raises_at(steps):
        steps += 1
        assert pool._idle == pool.instances  # pyright: ignore[reportPrivateUsage]
    assert steps > 6
    assert np.array_equal(host.run("double", x), x + x)
    assert len(pool.instances) == 1


def test_no_interrupt_is_lost_between_calls(host: Executable) -> None:
    """Nor in the finalizers of their results, from where no exception gets anywhere."""
    armed, raised, caught = False, 0, 0

    def interrupt(*_: object) -> None:
        nonlocal armed, raised
        if armed:
            armed, raised = False, raised + 1
            raise KeyboardInterrupt

    x = np.ones(2, np.float32)
    gc.collect()  # what other tests left: finalizers of other libraries are Python code
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while raised < 400:
            try:
                armed = True
                while armed:
                    host.run("double", x)
            except KeyboardInterrupt:
                caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught == raised
    assert host.run("double", x).tolist() == [2.0, 2.0]


def test_results_that_nobody_needs_are_used_by_the_next_calls(host: Executable) -> None:
    kept = [host.run("double", np.ones(2, np.float32)) for _ in range(100)]
    host.reset_counters()
    kept.clear()
    kept = [host.run("double", np.ones(2, np.float32)) for _ in range(100)]
    assert host.counters().driver_allocations["cpu:0"] == 0


def test_an_instance_whose_making_was_interrupted_is_waited_for_by_nobody(host: Executable) -> None:
    """A handler of a signal may raise between the decision to make one and the making."""
    pool = host._pool  # pyright: ignore[reportPrivateUsage]
    with in_a_call(host):
        held: list[Instance] = []
        assert pool._wait_for_idle(held)  # pyright: ignore[reportPrivateUsage]
        pool.give_back(held)
        assert pool._others() == 0  # pyright: ignore[reportPrivateUsage]


def test_forks_while_another_thread_is_in_a_call(host: Executable) -> None:
    """The host's code goes on in the new process; devices, whose drivers have threads, are one error."""
    counter = ctypes.c_int64()
    x = np.ones(2, np.float32)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(host.run, "meet", ctypes.addressof(counter), 2)
        while not counter.value:
            time.sleep(0.001)
        assert in_fork(lambda: (host.run("double", x).tolist(), host.close())) == "([2.0, 2.0], None)"
        host.run("meet", ctypes.addressof(counter), 0)
        assert call.result(60) == 1


def test_devices_after_a_fork(device: Any) -> None:
    with Executable(add_program()) as add:
        x = np.ones(5, np.float32)
        refused = "DeviceError: error: this process was forked from one that had opened devices"
        assert in_fork(lambda: add.run("add", x, x)).startswith(refused)
        assert in_fork(lambda: Executable(add_program())).startswith(refused)
        assert in_fork(devices.list_devices).startswith(refused)
        assert in_fork(add.close) == "None"
        with in_a_call(add):
            assert in_fork(lambda: add.run("add", x, x)).startswith(refused)
        assert add.run("add", x, x).tolist() == [2.0] * 5


def test_turns_of_python_threads_are_as_before_when_the_last_one_leaves():
    before = sys.getswitchinterval()
    with short_turns():
        with short_turns():
            assert sys.getswitchinterval() < before
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


_AT_ONCE = """
import sys, threading, devscope, numpy as np
sys.setswitchinterval(1e-5)
TEXT = '''func.func @main(%x: tensor<?xSIZExf32>) -> tensor<?xSIZExf32> {
  %0 = arith.addf %x, %x : tensor<?xSIZExf32>
  return %0 : tensor<?xSIZExf32>
}'''

def work(first):
    for size in range(first, first + 3):
        executable = devscope.compile(TEXT.replace("SIZE", str(size)), cache=False)
        assert (executable(np.ones((2, size), np.float32)) == 2).all()
    done.append(first)

done = []
threads = [threading.Thread(target=work, args=(10 * number + 1,)) for number in range(4)]
for one in threads: one.start()
for one in threads: one.join()
sys.exit(len(done) != 4)
"""


def test_the_first_programs_are_compiled_and_called_by_several_threads_at_once() -> None:
    """In a process of its own: what is made once for all programs is not there yet."""
    process = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
