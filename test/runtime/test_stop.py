"""Calls that stop in the middle: failed assertions, no memory, sizes that make no sense."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import host_object, opencl, program, symbol, vector

from devscope.errors import DeviceError, ExecutionError, SourceLocation
from devscope.runtime.executable import Executable
from devscope.runtime.native import runtime_object
from devscope.runtime.object_file import read_symbols
from devscope.runtime.program import Entry, TensorSpec

CALLS = 200

# guard(holds, n): makes two host buffers of n bytes and two device buffers of 64, frees one of each, then asserts.
# make(n): a vector of n f32, allocated as %n * 4 bytes, negative numbers as they are.
# lie(n): an empty buffer that claims to have n elements.
IR = """
@plain = private constant [17 x i8] c"assertion failed\\00"
@located = private constant [48 x i8] c"dir/a:b.mlir:12:7: assertion failed: n\\C3\\BC:1:2: x\\00"

define void @_mlir_ciface_devscope_entry_guard(ptr %result, ptr %holds, ptr %n) {
  %flag = call i64 @scalar(ptr %holds)
  %bytes = call i64 @scalar(ptr %n)
  %bad = icmp eq i64 %flag, 0
  %ok = xor i1 %bad, true
  %host1 = call ptr @devscope_host_alloc(i64 %bytes)
  %device1 = call ptr @devscope_alloc(i64 1, i64 64)
  %host2 = call ptr @devscope_host_alloc(i64 %bytes)
  %device2 = call ptr @devscope_alloc(i64 1, i64 64)
  %last = sub i64 %bytes, 1
  %touched1 = getelementptr i8, ptr %host1, i64 %last
  %touched2 = getelementptr i8, ptr %host2, i64 %last
  store i8 1, ptr %touched1
  store i8 1, ptr %touched2
  call void @_mlir_memref_to_llvm_free(ptr %host1)
  call void @devscope_free(i64 1, ptr %device1)
  call void @devscope_assert(i1 %ok, ptr @located)
  call void @devscope_free(i64 1, ptr %device2)
  call void @_mlir_memref_to_llvm_free(ptr %host2)
  call void @_mlir_memref_to_llvm_free(ptr null)
  call void @give_scalar(ptr %result, i64 %bytes)
  ret void
}

define void @_mlir_ciface_devscope_entry_plain() {
  call void @devscope_assert(i1 false, ptr @plain)
  ret void
}

define void @_mlir_ciface_devscope_entry_make(ptr %result, ptr %n) {
  %size = call i64 @scalar(ptr %n)
  %negative = icmp slt i64 %size, 0
  %four = mul i64 %size, 4
  %bytes = select i1 %negative, i64 %size, i64 %four
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  call void @give_vector(ptr %result, ptr %memory, i64 %size)
  ret void
}

define void @_mlir_ciface_devscope_entry_lie(ptr %result, ptr %n) {
  %size = call i64 @scalar(ptr %n)
  %memory = call ptr @devscope_host_alloc(i64 0)
  call void @give_vector(ptr %result, ptr %memory, i64 %size)
  ret void
}

; A driver fails first, then the host.
define void @_mlir_ciface_devscope_entry_both() {
  %device = call ptr @devscope_alloc(i64 1, i64 4611686018427387904)
  call void @devscope_assert(i1 false, ptr @plain)
  ret void
}
"""
I64 = TensorSpec("i64", [], True)
ENTRIES = {
    "guard": Entry(symbol("guard"), [I64, I64], [I64]),
    "plain": Entry(symbol("plain"), [], []),
    "make": Entry(symbol("make"), [I64], [vector()]),
    "lie": Entry(symbol("lie"), [I64], [vector()]),
    "both": Entry(symbol("both"), [], []),
}


@pytest.fixture
def exe(device: Any) -> Iterator[Executable]:
    with Executable(program(IR, ENTRIES, [opencl(1)])) as executable:
        yield executable


def resident_bytes() -> int:
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def assert_usable(exe: Executable) -> None:
    assert exe.run("guard", 1, 100) == 100
    assert exe.run("make", 3).shape == (3,)
    assert exe.counters().live == {"cpu:0": 0, "opencl:0": 0}


def test_assertion_stops_the_call(exe: Executable) -> None:
    with pytest.raises(ExecutionError) as caught:
        exe.run("guard", 0, 100)
    assert caught.value.location == SourceLocation("dir/a:b.mlir", 12, 7)
    assert caught.value.message == "assertion failed: nü:1:2: x"
    assert_usable(exe)


def test_assertion_without_a_location(exe: Executable) -> None:
    with pytest.raises(ExecutionError) as caught:
        exe.run("plain")
    assert (caught.value.location, caught.value.message) == (None, "assertion failed")
    assert_usable(exe)


def test_first_error_is_the_one_that_is_told(exe: Executable) -> None:
    with pytest.raises(DeviceError, match=r"opencl:0 \(.*\): allocating"):
        exe.run("both")
    assert_usable(exe)


@pytest.mark.parametrize("elements", [1 << 50, 1 << 60, (1 << 61) - 1])
def test_no_host_memory(exe: Executable, elements: int) -> None:
    with pytest.raises(DeviceError, match=r"cpu:0 \(host\): allocating .* TiB failed: out of host memory"):
        exe.run("make", elements)
    assert_usable(exe)


@pytest.mark.parametrize("entry", ["make", "lie"])
def test_negative_sizes(exe: Executable, entry: str) -> None:
    where = {"make": r"cpu:0 \(host\)", "lie": "result 0 of 'lie'"}[entry]
    with pytest.raises(DeviceError, match=f"{where}: a tensor would have a dimension of size -5"):
        exe.run(entry, -5)
    assert_usable(exe)


def test_a_stopped_call_frees_only_what_it_made(exe: Executable) -> None:
    kept = exe.run("make", 1000)
    kept[:] = 7
    with pytest.raises(ExecutionError):
        exe.run("guard", 0, 100)
    again = exe.run("make", 1000)
    again[:] = 8
    assert np.all(kept == 7)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ExecutionError, ("guard", 0, 1 << 20)),
        (DeviceError, ("make", 1 << 60)),
        (DeviceError, ("make", -1)),
        (DeviceError, ("lie", -1)),
    ],
)
def test_stopped_calls_do_not_leak(exe: Executable, error: type[Exception], call: tuple[Any, ...]) -> None:
    def fail(count: int) -> None:
        for _ in range(count):
            with pytest.raises(error):
                exe.run(*call)
            assert exe.counters().live == {"cpu:0": 0, "opencl:0": 0}

    fail(20)
    before, made = resident_bytes(), exe.counters().driver_allocations
    fail(CALLS)
    # 200 times the buffer that is live at the assertion would be 200 MiB.
    assert resident_bytes() - before < 8 << 20
    assert exe.counters().driver_allocations == made
    assert_usable(exe)


def test_stops_in_threads(device: Any) -> None:
    """Each executable has its own place to return to; calls of one take turns."""
    shared = program(IR, ENTRIES, [opencl(1)])
    one, two = Executable(shared), Executable(shared)
    wrong: list[str] = []

    def work(exe: Executable, seed: int) -> None:
        for index in range(50):
            holds = (index + seed) % 2
            try:
                result = exe.run("guard", holds, 64 + index)
            except ExecutionError:
                result = None
            if result != (64 + index if holds else None):
                wrong.append(f"thread {seed}, call {index}: {result}")

    threads = [threading.Thread(target=work, args=((one, two)[seed % 2], seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for exe in (one, two):
        assert_usable(exe)
        exe.close()


MANY = """
define void @_mlir_ciface_devscope_entry_many(ptr %result, ptr %n, ptr %freed) {
entry:
  %count = call i64 @scalar(ptr %n)
  %kept = call i64 @scalar(ptr %freed)
  %bytes = mul i64 %count, 8
  %handles = call ptr @devscope_host_alloc(i64 %bytes)
  br label %make
make:
  %i = phi i64 [ 0, %entry ], [ %i.next, %make ]
  %handle = call ptr @devscope_alloc(i64 1, i64 64)
  %p = getelementptr ptr, ptr %handles, i64 %i
  store ptr %handle, ptr %p
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %make, label %release
release:
  %j = phi i64 [ 0, %make ], [ %j.next, %next ]
  %go = icmp slt i64 %j, %kept
  br i1 %go, label %next, label %check
next:
  %q = getelementptr ptr, ptr %handles, i64 %j
  %old = load ptr, ptr %q
  call void @devscope_free(i64 1, ptr %old)
  %j.next = add i64 %j, 1
  br label %release
check:
  %all = icmp eq i64 %j, %count
  call void @devscope_assert(i1 %all, ptr @text)
  call void @_mlir_memref_to_llvm_free(ptr %handles)
  call void @give_scalar(ptr %result, i64 %count)
  ret void
}
@text = private constant [2 x i8] c"x\\00"
"""


def test_many_live_buffers(device: Any) -> None:
    """More than the table holds at first, freed in the order in which they were made; then some left."""
    entry = Entry(symbol("many"), [I64, I64], [I64])
    with Executable(program(MANY, {"main": entry}, [opencl(1)])) as exe:
        assert exe(1000, 1000) == 1000
        assert exe.counters().live["opencl:0"] == 0
        for freed in (0, 1, 500, 999):
            with pytest.raises(ExecutionError, match=r"^error: x$"):
                exe(1000, freed)
            assert exe.counters().live["opencl:0"] == 0


def test_the_objects_need_the_c_library_only() -> None:
    runtime = read_symbols(runtime_object())
    process = ctypes.CDLL(None)
    assert {"_setjmp", "_longjmp", "malloc", "free"} <= runtime.imported
    assert {name for name in runtime.imported if not hasattr(process, name)} <= {"_GLOBAL_OFFSET_TABLE_"}
    assert read_symbols(host_object(IR)).imported - {"_GLOBAL_OFFSET_TABLE_"} <= runtime.defined
