"""Executables: calls, results, errors in the middle of a program, threads, lifetime."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import (
    ADD,
    ADD_ENTRY,
    KERNEL,
    add_program,
    host_object,
    opencl,
    program,
    spirv,
    symbol,
    vector,
)

from devscope.errors import DeviceError, DeviceNotFoundError, ExecutableFormatError, InputError
from devscope.runtime.executable import Executable
from devscope.runtime.program import DeviceSpec, Entry, KernelSpec, TensorSpec


def arrays(size: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return generator.random(size, np.float32), generator.random(size, np.float32)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 10_000])
def test_call(add: Executable, size: int) -> None:
    x, y = arrays(size)
    result = add(x, y)
    assert result.dtype == np.float32
    assert np.array_equal(result, x + y)


def test_steady_state_makes_no_driver_allocation(add: Executable) -> None:
    x, y = arrays(1000)
    add(x, y)
    add.reset_counters()
    for _ in range(10):
        add(x, y)
    counters = add.counters()
    assert counters.allocations["opencl:0"] == 30
    assert counters.driver_allocations["opencl:0"] == 0


def test_two_executables_of_one_program(device: Any) -> None:
    shared = add_program()
    x, y = arrays(100)
    with Executable(shared) as one, Executable(shared) as two:
        one(x, y)
        one(x, y)
        two(x, y)
        assert one.counters().launches["opencl:0"] == 2
        assert two.counters().launches["opencl:0"] == 1
    with pytest.raises(InputError, match="closed"):
        one(x, y)


def test_two_virtual_devices_on_one_device(device: Any) -> None:
    """The sum runs on one virtual device, its result is doubled on the other."""
    ir = ADD.format(slot=1, kernel=KERNEL["add"])
    ir += ADD.format(slot=2, kernel=KERNEL["add"]).replace("entry_add", "entry_add2")
    entries = {"add": ADD_ENTRY, "add2": Entry(symbol("add2"), ADD_ENTRY.inputs, ADD_ENTRY.outputs)}
    x, y = arrays(100)
    with Executable(program(ir, entries, [opencl(1, 0), opencl(2, 1)]), {"opencl:1": "opencl:0"}) as exe:
        assert exe.devices == {"cpu:0": "cpu:0", "opencl:0": "opencl:0", "opencl:1": "opencl:0"}
        assert np.array_equal(exe.run("add2", exe.run("add", x, y), y), x + y + y)
        assert exe.counters().launches == {"cpu:0": 0, "opencl:0": 1, "opencl:1": 1}


def test_result_owns_its_memory(device: Any) -> None:
    x, y = arrays(1000)
    with Executable(add_program()) as exe:
        result = exe(x, y)
        part = result[10:20]
    del result, exe
    gc.collect()
    assert np.array_equal(part, (x + y)[10:20])
    part[:] = 0
    assert np.from_dlpack(part).sum() == 0


def test_entry_names(add: Executable) -> None:
    x, y = arrays(10)
    assert np.array_equal(add.run("add", x, y), x + y)
    with pytest.raises(InputError, match=r"no entry 'sub'\n.*its entries are: 'add'"):
        add.run("sub", x, y)


def test_error_inside_a_call_leaves_nothing_behind(device: Any) -> None:
    """A launch that fails between allocations and copies: no result, buffers freed, usable afterwards."""
    ir = ADD.format(slot=1, kernel=KERNEL["add"])
    ir += ADD.format(slot=1, kernel=77).replace("entry_add", "entry_bad")
    entries = {"add": ADD_ENTRY, "bad": Entry(symbol("bad"), ADD_ENTRY.inputs, ADD_ENTRY.outputs)}
    x, y = arrays(100)
    with Executable(program(ir, entries, [opencl(1)])) as exe:
        for _ in range(3):
            with pytest.raises(DeviceError, match="launching kernel number 77"):
                exe.run("bad", x, y)
        assert np.array_equal(exe.run("add", x, y), x + y)
        # Freed also after the error: the next call finds the three buffers.
        assert exe.counters().driver_allocations["opencl:0"] == 3
        # The copy to the host after the error was not made.
        assert exe.counters().d2h.copies == 1


# Allocates too much, then loops on the host until a value that should come from the device is not 1.
FAILING_LOOP = """
define void @_mlir_ciface_devscope_entry_loop() {
entry:
  %flag = alloca i64
  store i64 1, ptr %flag
  %huge = call ptr @devscope_alloc(i64 1, i64 4611686018427387904)
  br label %loop
loop:
  call void @devscope_copy(i64 1, ptr %huge, i64 0, i64 0, ptr %flag, i64 0, i64 8)
  %value = load i64, ptr %flag
  %again = icmp eq i64 %value, 1
  br i1 %again, label %loop, label %exit
exit:
  call void @devscope_free(i64 1, ptr %huge)
  ret void
}
"""


def test_copies_to_the_host_give_zeros_after_an_error(device: Any) -> None:
    exe = Executable(program(FAILING_LOOP, {"main": Entry(symbol("loop"), [], [])}, [opencl(1)]))
    with exe, pytest.raises(DeviceError, match="allocating"):
        exe()


def test_threads_take_turns(add: Executable) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        for size in range(1, 60):
            x, y = arrays(size * 7, seed)
            if not np.array_equal(add(x, y), x + y):
                failures.append(f"thread {seed}, size {size}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert add.counters().launches["opencl:0"] == 4 * 59


def test_executables_made_in_threads(device: Any) -> None:
    shared = add_program()
    x, y = arrays(100)
    results: list[Any] = []

    def work() -> None:
        with Executable(shared) as exe:
            results.append(exe(x, y))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(np.array_equal(result, x + y) for result in results)


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_calls_do_not_leak(add: Executable) -> None:
    x, y = arrays(50_000)
    for _ in range(200):
        add(x, y)
    before = resident_bytes()
    for _ in range(2000):
        add(x, y)
    # 2000 leaked results would be 400 MB.
    assert resident_bytes() - before < 8 << 20


def test_failing_calls_do_not_leak(device: Any) -> None:
    ir = ADD.format(slot=1, kernel=77)
    x, y = arrays(50_000)
    with Executable(program(ir, {"add": ADD_ENTRY}, [opencl(1)])) as exe:

        def fail(count: int) -> None:
            for _ in range(count):
                with pytest.raises(DeviceError):
                    exe(x, y)

        fail(100)
        before = resident_bytes()
        fail(500)
        assert resident_bytes() - before < 8 << 20


def test_executables_do_not_leak(device: Any) -> None:
    shared = add_program()
    x, y = arrays(500_000)

    def make(count: int) -> None:
        for _ in range(count):
            Executable(shared)(x, y)  # released without close()
        gc.collect()

    make(10)
    before = resident_bytes()
    make(40)
    # Each holds 6 MB of buffers in its free list.
    assert resident_bytes() - before < 60 << 20


HOST_ONLY = """
define void @_mlir_ciface_devscope_entry_pair(ptr %results, ptr %x) {
  %n = call i64 @size(ptr %x)
  %from = call ptr @data(ptr %x)
  %bytes = mul i64 %n, 8
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  call void @devscope_copy(i64 0, ptr %from, i64 0, i64 0, ptr %memory, i64 0, i64 %bytes)
  call void @give_vector(ptr %results, ptr %memory, i64 %n)
  %second = getelementptr i64, ptr %results, i64 5
  call void @give_scalar(ptr %second, i64 %n)
  ret void
}

; The same buffer as two results: an argument, returned without a copy.
define void @_mlir_ciface_devscope_entry_same(ptr %results, ptr %x) {
  %n = call i64 @size(ptr %x)
  %from = call ptr @data(ptr %x)
  call void @give_vector(ptr %results, ptr %from, i64 %n)
  %second = getelementptr i64, ptr %results, i64 5
  call void @give_vector(ptr %second, ptr %from, i64 %n)
  ret void
}

define void @_mlir_ciface_devscope_entry_nothing() {
  ret void
}
"""

HOST_ENTRIES = {
    "pair": Entry(symbol("pair"), [vector("i64")], [vector("i64"), TensorSpec("i64", [], True)]),
    "same": Entry(symbol("same"), [vector("i64", 4)], [vector("i64"), vector("i64")]),
    "nothing": Entry(symbol("nothing"), [], []),
}


def test_several_results_and_none() -> None:
    with Executable(program(HOST_ONLY, HOST_ENTRIES)) as exe:
        copy, count = exe.run("pair", np.arange(5))
        assert copy.tolist() == [0, 1, 2, 3, 4]
        assert isinstance(count, np.int64)
        assert count == 5
        assert exe.run("nothing") is None
        assert exe.devices == {"cpu:0": "cpu:0"}
        with pytest.raises(InputError, match="no entry 'main'"):
            exe()


def test_returned_arguments_are_copied() -> None:
    with Executable(program(HOST_ONLY, HOST_ENTRIES)) as exe:
        given = np.arange(4)
        one, two = exe.run("same", given)
        given[:] = 9
        one[0] = 7
        assert one.tolist() == [7, 1, 2, 3]
        assert two.tolist() == [0, 1, 2, 3]


def test_missing_symbol_is_named() -> None:
    ir = HOST_ONLY.replace("  ret void\n}\n\n; The", "  call void @no_such_function()\n  ret void\n}\n\n; The")
    with pytest.raises(ExecutableFormatError, match="programs may not call: no_such_function"):
        Executable(program(ir + "declare void @no_such_function()", HOST_ENTRIES))


def test_missing_entry_is_named() -> None:
    with pytest.raises(ExecutableFormatError, match=f"does not define: {symbol('gone')}"):
        Executable(program(HOST_ONLY, {"gone": Entry(symbol("gone"), [], [])}))


def test_damaged_host_object() -> None:
    broken = program(HOST_ONLY, HOST_ENTRIES)
    broken.host_object = b"\x7fELF\x02\x01" + bytes(100)
    with pytest.raises(ExecutableFormatError, match="host code"):
        Executable(broken)


def test_program_for_another_machine() -> None:
    foreign = program(HOST_ONLY, HOST_ENTRIES)
    foreign.host_triple = "riscv64-unknown-linux-gnu"
    with pytest.raises(ExecutableFormatError, match="compiled for 'riscv64-unknown-linux-gnu', this machine is"):
        Executable(foreign)


def test_program_for_another_cpu() -> None:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    lacking = next(name for name, there in features.items() if not there)
    foreign = program(HOST_ONLY, HOST_ENTRIES)
    foreign.host_cpu, foreign.host_features = "future", f"+{lacking},-prefer-256-bit,+some-tuning"
    with pytest.raises(ExecutableFormatError, match=rf"\(future\) with features .* lacks: {lacking}\n"):
        Executable(foreign)


def test_wrong_kernel_records(device: Any) -> None:
    spec = opencl(1)
    missing = DeviceSpec(1, "opencl", 0, "opencl", spec.binaries, [KernelSpec("nothing", [8])])
    with pytest.raises(DeviceError, match=r"kernel 'nothing' .* no kernel of that name"):
        Executable(add_program([missing]))
    short = DeviceSpec(1, "opencl", 0, "opencl", spec.binaries, [KernelSpec("add", [8, 8])])
    with pytest.raises(DeviceError, match="kernel 'add' takes 4 arguments, the program's record lists 2"):
        Executable(add_program([short]))


@pytest.mark.parametrize("damage", [lambda b: b[:-4], lambda b: b"\0" + b[1:], lambda b: b[:-1], lambda b: b""])
def test_damaged_kernels(device: Any, damage: Any) -> None:
    spec = opencl(1)
    broken = DeviceSpec(1, "opencl", 0, "opencl", [damage(spec.binaries[0])], spec.kernels)
    with pytest.raises(DeviceError, match=r"opencl:0 \(.*\): the device binary is not a SPIR-V module"):
        Executable(add_program([broken]))


def test_missing_device(device: Any) -> None:
    with pytest.raises(
        DeviceNotFoundError, match=r"'opencl:7'.*\n.*has: cpu:0, opencl:0.*\n.*'opencl:7': 'opencl:0'"
    ):
        Executable(add_program([opencl(1, 7)]))


def test_driver_binaries_are_cached(device: Any, tmp_path: Path) -> None:
    from devscope.runtime.cache import DiskCache

    cache = DiskCache(tmp_path)
    x, y = arrays(10)
    with Executable(add_program(), cache=cache) as exe:
        assert np.array_equal(exe(x, y), x + y)
    (entry,) = tmp_path.glob("*/*.bin")
    built = entry.read_bytes()
    with Executable(add_program(), cache=cache) as exe:
        assert np.array_equal(exe(x, y), x + y)
    assert entry.read_bytes() == built
    # What the driver does not accept is built anew and replaced.
    cache.store_blob(entry.stem, b"not a binary")
    with Executable(add_program(), cache=cache) as exe:
        assert np.array_equal(exe(x, y), x + y)
    assert entry.read_bytes() == built


CONVERT = """
define void @_mlir_ciface_devscope_entry_narrow(ptr %result, ptr %x) {
  %from = call ptr @data(ptr %x)
  %n = call i64 @size(ptr %x)
  %bytes = mul i64 %n, 2
  %memory = call ptr @devscope_host_alloc(i64 %bytes)
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %p = getelementptr FLOAT, ptr %from, i64 %i
  %value = load FLOAT, ptr %p
  %narrow = fptrunc FLOAT %value to bfloat
  %q = getelementptr bfloat, ptr %memory, i64 %i
  store bfloat %narrow, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  call void @give_vector(ptr %result, ptr %memory, i64 %n)
  ret void
}
"""


@pytest.mark.parametrize(("llvm_type", "dtype"), [("float", "f32"), ("double", "f64")])
def test_bf16_conversions_of_the_runtime(llvm_type: str, dtype: str) -> None:
    """Host code of a CPU without bf16 calls library functions that few processes have."""
    ir = CONVERT.replace("FLOAT", llvm_type)
    assert b"__trunc" in host_object(ir)
    entry = Entry(symbol("narrow"), [vector(dtype)], [vector("bf16")])
    wide = np.float32 if dtype == "f32" else np.float64
    generator = np.random.default_rng(0)
    values = np.concatenate(
        [
            generator.standard_normal(10_000),
            # Halfway cases of bf16, and values next to them.
            1 + np.arange(256) / 256 + 2.0**-9,
            1 + np.arange(256) / 256 + 2.0**-9 + 2.0**-40,
            1 + np.arange(256) / 256 + 2.0**-9 - 2.0**-40,
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3.4e38, 3.3895e38, -3.3e38],
        ]
    ).astype(wide)
    with Executable(program(ir, {"main": entry})) as exe:
        result = exe(values)
    assert np.array_equal(result.view(np.uint16), nearest_bf16(values))


def widen(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def nearest_bf16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bits of the nearest bf16, ties to even, found by comparing with both neighbours."""
    exact = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        best = (exact.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        for step in (-1, 1):
            candidate = (best.astype(np.int32) + step).astype(np.uint16)
            distance, current = np.abs(widen(candidate) - exact), np.abs(widen(best) - exact)
            better = (distance < current) | ((distance == current) & (candidate % 2 == 0))
            best = np.where(np.isfinite(exact) & np.isfinite(distance) & better, candidate, best)
    # Beyond the last finite value the nearest is infinity; and a NaN is the quiet one.
    largest = widen(np.uint16(0x7F7F)) * (1 + 2.0**-9)
    best = np.where(np.abs(exact) >= largest, np.where(exact < 0, 0xFF80, 0x7F80), best)
    return np.where(np.isnan(exact), 0x7FC0, best).astype(np.uint16)


MEMREF_COPY = """
declare void @memrefCopy(i64, ptr, ptr)
define void @_mlir_ciface_devscope_entry_copy2(ptr %result, ptr %x, ptr %y) {
  ; y = x transposed, through descriptors of rank 2 with swapped strides
  %sx = alloca [2 x i64]
  %sy = alloca [2 x i64]
  %sx.d = getelementptr i64, ptr %sx, i64 1
  %sy.d = getelementptr i64, ptr %sy, i64 1
  store i64 2, ptr %sx
  store i64 2, ptr %sy
  store ptr %x, ptr %sx.d
  store ptr %y, ptr %sy.d
  %s0 = getelementptr i64, ptr %y, i64 3
  %s1 = getelementptr i64, ptr %y, i64 4
  %t0 = getelementptr i64, ptr %y, i64 5
  %t1 = getelementptr i64, ptr %y, i64 6
  %m = load i64, ptr %s0
  %n = load i64, ptr %s1
  store i64 %n, ptr %s0
  store i64 %m, ptr %s1
  store i64 1, ptr %t0
  store i64 %n, ptr %t1
  call void @memrefCopy(i64 4, ptr %sx, ptr %sy)
  %bytes0 = mul i64 %m, %n
  call void @give_scalar(ptr %result, i64 %bytes0)
  ret void
}
"""


def test_strided_copy() -> None:
    matrix = TensorSpec("i32", [None, None])
    entry = Entry(symbol("copy2"), [matrix, matrix], [TensorSpec("i64", [], True)])
    with Executable(program(MEMREF_COPY, {"main": entry})) as exe:
        x = np.arange(12, dtype=np.int32).reshape(3, 4)
        y = np.zeros((4, 3), np.int32)
        exe(x, y)
        # Descriptor of y: sizes 3 x 4, strides 1, 3; its memory is x in column order.
        assert np.array_equal(y, x.T)


UNRESOLVED = """
declare spir_func void @nowhere()
define spir_kernel void @k() {
  call spir_func void @nowhere()
  ret void
}
"""


def test_failed_build_shows_the_log(device: Any) -> None:
    broken = DeviceSpec(1, "opencl", 0, "opencl", [spirv(UNRESOLVED)], [KernelSpec("k", [])])
    with pytest.raises(DeviceError, match=r"(?s)opencl:0 \(.*\) could not build the kernels .*log: .*nowhere"):
        Executable(add_program([broken]))
    with Executable(add_program()) as exe:
        x, y = arrays(10)
        assert np.array_equal(exe(x, y), x + y)
