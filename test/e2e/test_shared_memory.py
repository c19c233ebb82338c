"""Copies between memories that both ends reach are elided: same results, fewer copies, a check when loading.

``opencl:0`` and ``opencl:1`` run on a core each, where the driver divides the device: they share
memory then.
"""

from __future__ import annotations

import ctypes
import zlib
from pathlib import Path

import numpy as np
import pytest
import references  # noqa: F401  (registers the cases)
from delayed_queues import delayed_queues
from opencl_functions import opencl_functions, opencl_queues
from program_case import CASES, share
from test_delayed_queues import two_devices, used_devices
from test_programs import PROGRAMS, SEED, check_case

import devscope
from devscope.analysis.machine import nominal_machine
from devscope.analysis.machine_file import machine_toml
from devscope.runtime.drivers.opencl import opencl_devices

pytestmark = pytest.mark.fuzz

_CALLS = 3

_PROGRAMS = sorted(name for name in CASES if used_devices((PROGRAMS / f"{name}.mlir").read_text()))


@pytest.mark.parametrize("name", share(_PROGRAMS, 1))
def test_program(name: str, shared_machine: Path) -> None:
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode()), 8])
    path = PROGRAMS / f"{name}.mlir"
    places = {"cuda:0": "opencl:0", **two_devices()}
    devices = {device: places[device] for device in used_devices(path.read_text()) if device in places}
    if "cuda:0" in devices and "opencl:0" in devices:
        devices["cuda:0"] = devices["opencl:0"]  # of the same context
    even = zlib.crc32(name.encode()) % 2
    with (
        devscope.compile(
            path,
            arguments="open" if even else "host",
            storage="planned" if zlib.crc32(name.encode()) % 4 else "dynamic",
            devices=devices,
            machine=shared_machine,
        ) as executable,
        delayed_queues(executable, SEED),
    ):
        for case in CASES[name]:
            for _ in range(_CALLS):
                check_case(executable, case, rng)


READ = """
#host = #device.scope<"cpu", 0 : i64, "", "">
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %0 = math.tanh %x {device.scope = #dev} : tensor<?x16xf32>
  %1 = math.exp %0 {device.scope = #host} : tensor<?x16xf32>
  %2 = arith.mulf %0, %0 {device.scope = #dev} : tensor<?x16xf32>
  func.return %1, %2 : tensor<?x16xf32>, tensor<?x16xf32>
}
"""

#: The host writes to what it read, which no device needs any more, and the device to what the host is done with.
LOOP = """
#host = #device.scope<"cpu", 0 : i64, "", "">
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<64xf32> {
    %0 = math.tanh %a {device.scope = #dev} : tensor<64xf32>
    %e = tensor.extract %a[%i] : tensor<64xf32>
    %1 = tensor.insert %e into %0[%c0] {device.scope = #host} : tensor<64xf32>
    %2 = arith.addf %1, %a {device.scope = #host} : tensor<64xf32>
    scf.yield %2 : tensor<64xf32>
  }
  func.return %r : tensor<64xf32>
}
"""


@pytest.fixture(params=["planned", "dynamic"])
def storage(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_host_reads_in_place(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng(SEED)
    devices = {"opencl:0": two_devices().get("opencl:0", "opencl:0")}
    reads: list[int] = []
    for path in (None, shared_machine):
        with devscope.compile(READ, machine=path, storage=storage, devices=devices) as executable:
            assert executable.program.shared == ([] if path is None else [(0, 1)])
            with delayed_queues(executable, SEED):
                for rows in (1, 7, 300, 7):
                    x = rng.standard_normal((rows, 16), np.float32)
                    executable.reset_counters()
                    powers, squares = executable(x)
                    np.testing.assert_allclose(squares, np.tanh(x) ** 2, rtol=1e-5)
                    np.testing.assert_allclose(powers, np.exp(np.tanh(x)), rtol=1e-5)
            reads.append(executable.counters().d2h.copies)
    assert reads == [2, 1]  # the result has memory of its own


def test_loops_and_writes(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng([SEED, 1])
    x = rng.standard_normal(64, np.float32)
    expected = x.copy()
    for i in range(20):
        device = np.tanh(expected)
        device[0] = expected[i]
        expected = device + expected
    with devscope.compile(LOOP, machine=shared_machine, storage=storage) as executable:
        with delayed_queues(executable, SEED):
            for _ in range(2):
                np.testing.assert_allclose(executable(x, 20), expected, rtol=1e-5)
        counters = executable.counters()
        assert counters.d2h.copies == 0
        assert counters.live == {"cpu:0": 0, "opencl:0": 0}


#: What both devices make goes to the other one; one of them goes on with what the other one reads.
TWO = """
#dev0 = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %0 = math.tanh %x {device.scope = #dev0} : tensor<?x16xf32>
  %1 = math.exp %0 {device.scope = #dev1} : tensor<?x16xf32>
  %2 = arith.mulf %0, %0 {device.scope = #dev0} : tensor<?x16xf32>
  %3 = arith.addf %1, %2 {device.scope = #dev1} : tensor<?x16xf32>
  %4 = arith.addf %1, %2 {device.scope = #dev0} : tensor<?x16xf32>
  func.return %3, %4 : tensor<?x16xf32>, tensor<?x16xf32>
}
"""

#: In turn, with work of both in every iteration.
TWO_LOOP = """
#host = #device.scope<"cpu", 0 : i64, "", "">
#dev0 = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<64xf32> {
    %0 = math.tanh %a {device.scope = #dev0} : tensor<64xf32>
    %1 = math.exp %0 {device.scope = #dev1} : tensor<64xf32>
    %2 = arith.subf %1, %0 {device.scope = #dev0} : tensor<64xf32>
    %3 = arith.mulf %2, %0 {device.scope = #host} : tensor<64xf32>
    scf.yield %3 : tensor<64xf32>
  }
  func.return %r : tensor<64xf32>
}
"""

#: One device is ahead of the other one, which has not read yet what is made anew.
AHEAD = """
#dev0 = #device.scope<"opencl", 0 : i64, "", "">
#dev1 = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<64xf32> {
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = tensor.splat %f : tensor<64xf32>
    %0 = arith.mulf %x, %s {device.scope = #dev0} : tensor<64xf32>
    %1 = arith.addf %sum, %0 {device.scope = #dev1} : tensor<64xf32>
    scf.yield %1 : tensor<64xf32>
  }
  func.return %r : tensor<64xf32>
}
"""


def test_devices_ahead_of_others(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng([SEED, 4])
    with devscope.compile(AHEAD, machine=shared_machine, storage=storage, devices=two_devices()) as executable:
        assert executable.program.shared == [(1, 2)]
        with delayed_queues(executable, SEED):
            for _ in range(6):
                x = rng.standard_normal(64, np.float32)
                np.testing.assert_allclose(executable(x, 30), x * (1 + sum(range(30))), rtol=1e-4)
        assert executable.counters().d2d.copies == 0
        executable.reset_counters()
        executable(x, 30)
        assert sum(executable.counters().driver_allocations.values()) == 0


#: The host makes what the device needs, sooner than that is done with what it got before.
MADE = """
#host = #device.scope<"cpu", 0 : i64, "", "">
#dev0 = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<64xf32>, %n: index) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = math.exp %x {device.scope = #host} : tensor<64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<64xf32> {
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = tensor.splat %f : tensor<64xf32>
    %0 = arith.mulf %e, %s {device.scope = #host} : tensor<64xf32>
    %1 = arith.addf %sum, %0 {device.scope = #dev0} : tensor<64xf32>
    scf.yield %1 : tensor<64xf32>
  }
  %2 = arith.addf %r, %e {device.scope = #dev0} : tensor<64xf32>
  func.return %2, %e : tensor<64xf32>, tensor<64xf32>
}
"""


def test_the_host_makes_in_place(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng([SEED, 5])
    h2d: list[int] = []
    for path in (None, shared_machine):
        with devscope.compile(MADE, machine=path, storage=storage) as executable:
            with delayed_queues(executable, SEED):
                for _ in range(6):
                    x = rng.standard_normal(64, np.float32)
                    executable.reset_counters()
                    total, powers = executable(x, 30)
                    np.testing.assert_allclose(powers, np.exp(x), rtol=1e-5)
                    np.testing.assert_allclose(total, x + np.exp(x) * (1 + sum(range(30))), rtol=1e-4)
                    h2d.append(executable.counters().h2d.copies)
            if storage == "planned":
                assert sum(executable.counters().driver_allocations.values()) == 0
    assert h2d[0] - h2d[-1] == 30  # the arguments of the loop are the caller's, and its result is


#: Nothing in host code reads what is stored.
STORED = """
#dev0 = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%a: f32, %b: f32) -> f32 {
  %c1 = arith.constant 1 : index
  %0 = tensor.from_elements %a, %b : tensor<2xf32>
  %1 = math.exp %0 {device.scope = #dev0} : tensor<2xf32>
  %r = tensor.extract %1[%c1] : tensor<2xf32>
  func.return %r : f32
}
"""


def test_the_host_stores_in_place(shared_machine: Path, storage: str) -> None:
    with devscope.compile(STORED, machine=shared_machine, storage=storage) as executable:
        for b in (0.5, -1.0, 2.0):
            assert executable(0.0, b) == pytest.approx(np.exp(b), rel=1e-5)
        assert executable.counters().h2d.copies == 0


def test_devices_read_in_place(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng([SEED, 2])
    d2d: list[int] = []
    for path in (None, shared_machine):
        with devscope.compile(TWO, machine=path, storage=storage, devices=two_devices()) as executable:
            assert executable.program.shared == ([] if path is None else [(1, 2)])
            with delayed_queues(executable, SEED):
                for rows in (1, 7, 300, 7):
                    x = rng.standard_normal((rows, 16), np.float32)
                    executable.reset_counters()
                    device = np.tanh(x)
                    for result in executable(x):
                        np.testing.assert_allclose(result, np.exp(device) + device * device, rtol=1e-5)
            d2d.append(executable.counters().d2d.copies)
            assert set(executable.counters().live.values()) == {0}
    assert d2d == [3, 0]


def test_devices_in_loops(shared_machine: Path, storage: str) -> None:
    rng = np.random.default_rng([SEED, 3])
    x = rng.standard_normal(64, np.float32)
    expected = x
    for _ in range(20):
        device = np.tanh(expected)
        expected = (np.exp(device) - device) * device
    with devscope.compile(TWO_LOOP, machine=shared_machine, storage=storage, devices=two_devices()) as executable:
        with delayed_queues(executable, SEED):
            for _ in range(4):
                np.testing.assert_allclose(executable(x, 20), expected, rtol=1e-4)
        counters = executable.counters()
        assert (counters.d2d.copies, counters.d2h.copies) == (0, 0)
        executable.reset_counters()
        np.testing.assert_allclose(executable(x, 20), expected, rtol=1e-4)
        assert sum(executable.counters().driver_allocations.values()) == 0


FILLED = """
#host = #device.scope<"cpu", 0 : i64, "", "">
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%n: index, %v: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.fill {device.scope = #dev} ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = math.exp %0 {device.scope = #dev} : tensor<?xf32>
  %2 = math.tanh %1 {device.scope = #host} : tensor<?xf32>
  %r = tensor.extract %2[%c0] : tensor<?xf32>
  func.return %r : f32
}
"""


def test_a_failed_call(shared_machine: Path) -> None:
    """Without the device's buffer the host has nothing to read: the call ends, the next one works."""
    with devscope.compile(FILLED, machine=shared_machine) as executable:
        for _ in range(2):
            with pytest.raises(devscope.errors.DeviceError, match=r"allocating .* failed"):
                executable(1 << 50, 1.0)
            assert executable.counters().live == {"cpu:0": 0, "opencl:0": 0}
            assert executable(5, 0.5) == pytest.approx(np.tanh(np.exp(0.5)), rel=1e-5)
        assert executable.counters().d2h.copies == 0


def test_an_allocation_that_is_not_shared(shared_machine: Path) -> None:
    """The driver may refuse to share some memory: the host cannot reach that, and must not try."""
    allocate = ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32
    )
    refuse = allocate(lambda *_: None)
    with devscope.compile(FILLED, machine=shared_machine) as executable:
        (queue,) = opencl_queues(executable)
        table = opencl_functions(executable)
        table.clSVMAlloc = ctypes.cast(refuse, ctypes.c_void_p).value
        before, queue.cl = queue.cl, ctypes.addressof(table)
        with pytest.raises(devscope.errors.DeviceError, match="copying 20 bytes failed: out of device memory"):
            executable(5, 0.5)
        queue.cl = before
        assert executable(500, 0.5) == pytest.approx(np.tanh(np.exp(0.5)), rel=1e-5)


def test_devices_that_do_not_share_memory(
    shared_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with devscope.compile(READ, machine=shared_machine) as executable:
        executable.save(tmp_path / "read.dsx")
    device = opencl_devices()[0][0]
    with devscope.load(tmp_path / "read.dsx") as executable:
        assert executable.program.shared == [(0, 1)]
    monkeypatch.setattr(device, "shares_memory", False)
    message = r"for 'cpu:0' and 'opencl:0' that reach each other's memory; the host and opencl:0 .* do not"
    for make in (
        lambda: devscope.load(tmp_path / "read.dsx"),
        lambda: devscope.compile(READ, machine=shared_machine),
    ):
        with pytest.raises(devscope.errors.DeviceError, match=message) as caught:
            make()
        assert "with a machine description in which no group of 'shared' has both" in str(caught.value)
    with devscope.compile(READ) as executable:
        x = np.ones((3, 16), np.float32)
        np.testing.assert_allclose(executable(x)[1], np.tanh(x) ** 2, rtol=1e-5)


def test_the_cache_knows_the_description(shared_machine: Path, tmp_path: Path) -> None:
    apart = tmp_path / "apart.toml"
    apart.write_text(machine_toml(nominal_machine(["opencl:0"], "cpu:0")))
    paths = (shared_machine, apart, shared_machine, None)
    assert [devscope.compile(READ, machine=path).program.shared for path in paths] == [[(0, 1)], [], [(0, 1)], []]
