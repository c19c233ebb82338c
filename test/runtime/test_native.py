"""The native runtime, one call at a time: memory, copies, constants, launches, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handmade import GROUP, KERNEL, opencl

from devscope.errors import DeviceError
from devscope.runtime.executable import Executable
from devscope.runtime.instance import FREE_LIST_ENTRIES
from devscope.runtime.pool import CopyCount
from devscope.runtime.program import ConstantSpec

Make = Callable[..., Executable]


def devices(exe: Executable) -> Any:
    """The native records of the executable's devices."""
    return exe._pool.instances[0].records  # pyright: ignore[reportPrivateUsage]


def address(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def write(exe: Executable, slot: int, handle: int, array: np.ndarray[Any, Any]) -> None:
    exe.run("copy", 0, address(array), 0, slot, handle, 0, array.nbytes)


def read(exe: Executable, slot: int, handle: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    result = np.empty_like(like)
    exe.run("copy", slot, handle, 0, 0, address(result), 0, result.nbytes)
    return result


def launch(exe: Executable, slot: int, kernel: str | int, groups: Any, size: Any, *cells: int) -> None:
    array = np.array(cells, np.int64)
    number = KERNEL[kernel] if isinstance(kernel, str) else kernel
    exe.run("launch", slot, number, *groups, *size, address(array), len(cells))


def test_round_trip(run_calls: Make) -> None:
    exe = run_calls()
    data = np.arange(1000, dtype=np.int32)
    handle = exe.run("alloc", 1, data.nbytes)
    write(exe, 1, handle, data)
    assert np.array_equal(read(exe, 1, handle, data), data)
    exe.run("free", 1, handle)


def test_copies_honour_offsets(run_calls: Make) -> None:
    exe = run_calls()
    data = np.arange(16, dtype=np.int32)
    handle = exe.run("alloc", 1, data.nbytes)
    write(exe, 1, handle, np.zeros_like(data))
    exe.run("copy", 0, address(data), 4 * 2, 1, handle, 4 * 5, 4 * 3)
    result = np.full(8, -1, np.int32)
    exe.run("copy", 1, handle, 4 * 4, 0, address(result), 4, 4 * 5)
    assert result.tolist() == [-1, 0, 2, 3, 4, 0, -1, -1]
    exe.run("free", 1, handle)


def test_copy_inside_a_device(run_calls: Make) -> None:
    exe = run_calls()
    data = np.arange(100, dtype=np.float32)
    one, two = exe.run("alloc", 1, data.nbytes), exe.run("alloc", 1, data.nbytes)
    write(exe, 1, one, data)
    exe.run("copy", 1, one, 0, 1, two, 0, data.nbytes)
    assert np.array_equal(read(exe, 1, two, data), data)
    exe.run("free", 1, one)
    exe.run("free", 1, two)


def test_copy_between_virtual_devices_of_one_device(run_calls: Make) -> None:
    exe = run_calls(opencl(1, 0), opencl(2, 1), mapping={"opencl:1": "opencl:0"})
    data = np.arange(100, dtype=np.float32)
    one, two = exe.run("alloc", 1, data.nbytes), exe.run("alloc", 2, data.nbytes)
    write(exe, 1, one, data)
    exe.run("copy", 1, one, 40, 2, two, 80, 200)
    assert np.array_equal(read(exe, 2, two, data)[20:70], data[10:60])
    assert exe.counters().copies["opencl:0", "opencl:1"] == CopyCount(1, 200)
    assert exe.counters().d2d == CopyCount(1, 200)
    exe.run("free", 1, one)
    exe.run("free", 2, two)


@pytest.mark.parametrize("megabytes", [1, 9])
def test_staged_copy_between_domains(run_calls: Make, megabytes: int) -> None:
    """Devices of different contexts copy through the host, large buffers in pieces."""
    exe = run_calls(opencl(1, 0), opencl(2, 1), mapping={"opencl:1": "opencl:0"})
    # The machine has one device: telling the runtime that the domains differ takes the same path.
    record = devices(exe)[2]
    domain = record.domain
    data = np.random.default_rng(0).integers(0, 255, (megabytes << 20) + 5, np.uint8)
    one, two = exe.run("alloc", 1, data.nbytes), exe.run("alloc", 2, data.nbytes)
    write(exe, 1, one, data)
    record.domain = domain + 8
    exe.run("copy", 1, one, 3, 2, two, 1, data.nbytes - 3)
    record.domain = domain
    assert np.array_equal(read(exe, 2, two, data)[1:-2], data[3:])
    exe.run("free", 1, one)
    exe.run("free", 2, two)


def test_copy_on_the_host(run_calls: Make) -> None:
    exe = run_calls()
    data, result = np.arange(8, dtype=np.int64), np.zeros(8, np.int64)
    exe.run("copy", 0, address(data), 8, 0, address(result), 16, 24)
    assert result.tolist() == [0, 0, 1, 2, 3, 0, 0, 0]


def test_empty_buffers_and_copies(run_calls: Make) -> None:
    exe = run_calls()
    handle = exe.run("alloc", 1, 0)
    assert handle != 0
    exe.run("copy", 0, 0, 0, 1, handle, 0, 0)
    exe.run("copy", 1, handle, 0, 0, 0, 0, 0)
    exe.run("free", 1, handle)
    exe.run("free", 1, 0)
    assert exe.counters().copies == {}


def test_scalar_and_byte_arguments(run_calls: Make) -> None:
    exe = run_calls()
    handle = exe.run("alloc", 1, 4)
    out = np.zeros(1, np.int32)
    # The cells hold junk above the bytes that count.
    launch(exe, 1, "pick", (1, 1, 1), (1, 1, 1), handle, 0x7F01, (5 << 32) | 42)
    assert read(exe, 1, handle, out)[0] == 42
    launch(exe, 1, "pick", (1, 1, 1), (1, 1, 1), handle, 0x7F00, 42)
    assert read(exe, 1, handle, out)[0] == -1
    exe.run("free", 1, handle)


def test_workgroup_local_memory(run_calls: Make) -> None:
    exe = run_calls()
    data = np.arange(2 * GROUP, dtype=np.float32)
    one, two = exe.run("alloc", 1, data.nbytes), exe.run("alloc", 1, data.nbytes)
    write(exe, 1, one, data)
    launch(exe, 1, "reverse", (2, 1, 1), (GROUP, 1, 1), one, two, 0)
    expected = np.concatenate([data[:GROUP][::-1], data[GROUP:][::-1]])
    assert np.array_equal(read(exe, 1, two, data), expected)
    exe.run("free", 1, one)
    exe.run("free", 1, two)


def test_grid_counts_workgroups_in_three_dimensions(run_calls: Make) -> None:
    exe = run_calls()
    out = np.zeros((2, 3, 4), np.int64)
    handle = exe.run("alloc", 1, out.nbytes)
    launch(exe, 1, "position", (2, 1, 2), (2, 3, 1), handle)
    z, y, x = np.indices(out.shape)
    assert np.array_equal(read(exe, 1, handle, out), 100 * z + 10 * y + x)
    exe.run("free", 1, handle)


@pytest.mark.parametrize("groups", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_empty_grid_does_nothing(run_calls: Make, groups: tuple[int, int, int]) -> None:
    exe = run_calls()
    launch(exe, 1, "position", groups, (1, 1, 1), 0)
    assert exe.counters().launches == {"cpu:0": 0, "opencl:0": 0}


def test_freed_buffers_are_reused_by_size(run_calls: Make) -> None:
    exe = run_calls()
    first, second = exe.run("alloc", 1, 1000), exe.run("alloc", 1, 2000)
    exe.run("free", 1, first)
    exe.run("free", 1, second)
    assert exe.run("alloc", 1, 2000) == second
    assert exe.run("alloc", 1, 1000) == first
    other = exe.run("alloc", 1, 5000)
    assert exe.counters().allocations["opencl:0"] == 5
    assert exe.counters().driver_allocations["opencl:0"] == 3
    for handle in (first, second, other):
        exe.run("free", 1, handle)


def test_free_list_is_bounded_in_entries(run_calls: Make) -> None:
    exe = run_calls()
    sizes = [64 * (index + 1) for index in range(FREE_LIST_ENTRIES + 10)]
    for handle in [exe.run("alloc", 1, size) for size in sizes]:
        exe.run("free", 1, handle)
    record = devices(exe)[1].free_list
    assert record.count == FREE_LIST_ENTRIES
    assert record.bytes == sum(sizes[10:])
    # The oldest are gone, the newest are there.
    exe.reset_counters()
    exe.run("free", 1, exe.run("alloc", 1, sizes[-1]))
    assert exe.counters().driver_allocations["opencl:0"] == 0
    exe.run("free", 1, exe.run("alloc", 1, sizes[0]))
    assert exe.counters().driver_allocations["opencl:0"] == 1


def test_free_list_is_bounded_in_bytes(run_calls: Make) -> None:
    exe = run_calls()
    record = devices(exe)[1].free_list
    record.limit = 4096
    small, medium, large = (exe.run("alloc", 1, size) for size in (1024, 3584, 8192))
    exe.run("free", 1, small)
    exe.run("free", 1, large)  # more than the limit: not kept, and nothing is evicted for it
    assert (record.count, record.bytes) == (1, 1024)
    exe.run("free", 1, medium)
    assert (record.count, record.bytes) == (1, 3584)


def test_constants_are_uploaded_once(run_calls: Make) -> None:
    values = np.arange(10, dtype=np.float32)
    empty = np.empty((0, 3), np.float32)
    constants = [(ConstantSpec("f32", [10]), values), (ConstantSpec("f32", [0, 3]), empty)]
    exe = run_calls(constants=constants)
    assert exe.run("constant", 0, 0) == address(values)
    handle = exe.run("constant", 1, 0)
    assert exe.run("constant", 1, 0) == handle
    assert np.array_equal(read(exe, 1, handle, values), values)
    assert exe.run("constant", 1, 1) not in (0, handle)
    assert exe.counters().h2d == CopyCount(1, values.nbytes)


def test_counters(run_calls: Make) -> None:
    exe = run_calls()
    data = np.zeros(64, np.float32)
    handles = [exe.run("alloc", 1, data.nbytes) for _ in range(3)]
    write(exe, 1, handles[0], data)
    write(exe, 1, handles[1], data)
    launch(exe, 1, "add", (1, 1, 1), (64, 1, 1), *handles, 64)
    read(exe, 1, handles[2], data)
    counters = exe.counters()
    assert counters.launches == {"cpu:0": 0, "opencl:0": 1}
    assert counters.allocations == {"cpu:0": 3, "opencl:0": 3}
    assert counters.copies == {
        ("cpu:0", "opencl:0"): CopyCount(2, 512),
        ("opencl:0", "cpu:0"): CopyCount(1, 256),
    }
    assert (counters.h2d, counters.d2h, counters.d2d) == (CopyCount(2, 512), CopyCount(1, 256), CopyCount())
    exe.reset_counters()
    assert exe.counters().copies == {}
    assert exe.counters().launches["opencl:0"] == 0
    for handle in handles:
        exe.run("free", 1, handle)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("alloc", 7, 64), "slot 7: an allocation failed: the program has 2 device slots"),
        (("alloc", 1, -1), "a tensor would have a dimension of size -1"),
        (("constant", 1, 3), "using constant 3 failed: the program has no such constant"),
        (("launch", 1, 99, 1, 1, 1, 1, 1, 1, 0, 0), "launching kernel number 99 failed: the device has no such"),
        (("launch", 1, 0, 1, 1, 1, 1, 1, 1, 0, 3), "launching kernel 'add' failed: the number of arguments"),
        (("launch", 0, 0, 1, 1, 1, 1, 1, 1, 0, 0), r"cpu:0 \(host\): launching kernel number 0 failed"),
        (("copy", 0, 0, 0, 1, 0, 0, -8), "copying -8 bytes failed: the size is negative"),
        (("copy", 0, 0, 0, 9, 0, 0, 8), "slot 9: a copy failed"),
        (("free", 5, 8), "slot 5: freeing a buffer failed"),
    ],
)
def test_wrong_calls_are_errors(run_calls: Make, call: tuple[Any, ...], message: str) -> None:
    exe = run_calls()
    with pytest.raises(DeviceError, match=message):
        exe.run(*call)
    exe.run("free", 1, exe.run("alloc", 1, 64))


def test_allocation_beyond_the_device_is_an_error(run_calls: Make) -> None:
    exe = run_calls()
    kept = exe.run("alloc", 1, 4096)
    exe.run("free", 1, kept)
    with pytest.raises(DeviceError, match=r"opencl:0 \(.*\): allocating 4.0 TiB failed: .*OpenCL error -61"):
        exe.run("alloc", 1, 4 << 40)
    handle = exe.run("alloc", 1, 4096)
    # What the free list held was given back to the driver before the error was reported.
    assert exe.counters().driver_allocations["opencl:0"] == 2
    exe.run("free", 1, handle)


def test_driver_errors_name_device_and_kernel(
    run_calls: Make, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = device.max_workgroup_size
    monkeypatch.setattr(device, "max_workgroup_size", 4 * limit)  # so that the driver is asked
    exe = run_calls()
    handle = exe.run("alloc", 1, 64)
    too_large = 2 * limit
    with pytest.raises(DeviceError, match=r"opencl:0 \(.*\): launching kernel 'position' failed: .*OpenCL error"):
        launch(exe, 1, "position", (1, 1, 1), (too_large, 1, 1), handle)
    exe.run("free", 1, handle)


def test_virtual_device_is_named_with_its_physical_one(run_calls: Make) -> None:
    exe = run_calls(opencl(1, 3), mapping={"opencl:3": "opencl:0"})
    with pytest.raises(DeviceError, match=r"opencl:3 on opencl:0 \("):
        exe.run("alloc", 1, 4 << 40)
