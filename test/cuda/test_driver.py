"""The driver of CUDA devices, over NVIDIA's as Python plays it: streams are late, and in any order that may be."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulation import EmulatingEmitter, set_order
from fake_driver import ILLEGAL_ADDRESS, MEMORY, OUT_OF_MEMORY, FakeCuda

import devscope
from devscope.errors import DeviceError, DeviceNotFoundError
from devscope.lowering.gpu import to_llvm
from devscope.runtime.cache import DIRECTORY_VARIABLE
from devscope.runtime.devices import driver_problems, list_devices
from devscope.runtime.drivers import cuda

sys.path.append(str(Path(__file__).parents[1] / "e2e"))

import references  # noqa: F401  (registers the cases)
from program_case import CASES, share
from test_programs import PROGRAMS, SEED, check_case

pytestmark = pytest.mark.fuzz

#: Calls of each entry; arguments of a call must not reach the results of the one before.
_CALLS = 3


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeCuda]]:
    """``fake(seed)``: the machine has NVIDIA's driver, and two devices."""
    made: list[FakeCuda] = []

    def install(seed: int = 0, **changes: Any) -> FakeCuda:
        made.append(loaded := FakeCuda(seed))
        for name, value in changes.items():
            setattr(loaded, name, value)
        emitter = EmulatingEmitter()
        monkeypatch.setattr(cuda, "ctypes", SimpleNamespace(CDLL=lambda _: loaded))
        monkeypatch.setattr(to_llvm, "shared_emitter", lambda: emitter)
        cuda.search.forget()
        set_order(seed)
        return loaded

    yield install
    cuda.search.forget()
    for loaded in made:
        assert not loaded.left(), loaded.left()


def used_devices(text: str) -> list[str]:
    return [name for name in ("opencl:0", "opencl:1", "cuda:0") if '"{}", {}'.format(*name.split(":")) in text]


_PROGRAMS = sorted(name for name in CASES if used_devices((PROGRAMS / f"{name}.mlir").read_text()))


@pytest.mark.parametrize("places", ["one", "two"])
@pytest.mark.parametrize("name", share(_PROGRAMS, 0) + share(_PROGRAMS, 1))
@pytest.mark.sampled(4)
def test_program(name: str, places: str, fake: Callable[..., FakeCuda]) -> None:
    """Its devices are one physical one, whose memory they share, or two, which copy through the host."""
    seed = zlib.crc32(f"{name}{places}{SEED}".encode())
    fake(seed)
    rng = np.random.default_rng(seed)
    path = PROGRAMS / f"{name}.mlir"
    devices = {device: "cuda:0" for device in used_devices(path.read_text())}
    if places == "two" and "opencl:1" in devices:
        devices["opencl:1"] = "cuda:1"
    arguments = "host" if seed % 2 else "open"
    with devscope.compile(path, arguments=arguments, devices=devices, cache=False) as executable:
        for case in CASES[name]:
            for _ in range(_CALLS):
                check_case(executable, case, rng)


_SUM = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.addf %x, %y : tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def total(fake: Callable[..., FakeCuda]) -> tuple[FakeCuda, devscope.Executable]:
    loaded = fake()
    return loaded, devscope.compile(_SUM, default="cuda:0", cache=False)


def ones(count: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(count, np.float32), np.arange(count, dtype=np.float32)


def test_devices(fake: Callable[..., FakeCuda]) -> None:
    fake()
    first, second = (device for device in list_devices() if device.type == "cuda")
    assert (first.name, second.name, second.description) == ("cuda:0", "cuda:1", "fake 1")
    assert (first.max_workgroup_size, first.local_memory_bytes) == (1024, 227 << 10)
    assert "compute capability 9.0" in first.describe()
    assert first.target_options == {"arch": "sm_90"}


@pytest.mark.parametrize(
    ("capability", "architecture"), [((8, 6), "sm_86"), ((8, 8), "sm_87"), ((13, 1), "sm_120")]
)
def test_architecture(fake: Callable[..., FakeCuda], capability: tuple[int, int], architecture: str) -> None:
    """The last one that is known, of those whose code runs there."""
    fake(capability=capability)
    assert cuda.cuda_devices()[0][0].target_options == {"arch": architecture}


def test_devices_that_are_too_old(fake: Callable[..., FakeCuda]) -> None:
    fake(capability=(7, 0))
    assert not [device for device in list_devices() if device.type == "cuda"]
    assert "cuda:0: fake 0 is of compute capability 7.0, and 7.5 is needed" in driver_problems()


def test_drivers_without_devices(fake: Callable[..., FakeCuda]) -> None:
    fake(fails={"cuInit": 100})
    assert not driver_problems() or "cuInit" not in driver_problems()[-1]
    with pytest.raises(DeviceNotFoundError, match="needs device 'cuda:0', which this machine does not have"):
        devscope.compile(_SUM, default="cuda:0", cache=False)


def test_drivers_that_fail(fake: Callable[..., FakeCuda]) -> None:
    fake(fails={"cuInit": 802})
    assert "CUDA: error: cuInit failed: error 802 (CUDA_ERROR_802)" in driver_problems()


def test_refused_ptx(fake: Callable[..., FakeCuda]) -> None:
    loaded = fake(fails={"cuLinkAddData_v2": 218}, log=b"ptxas: line 7: Parsing error\n")
    with pytest.raises(
        DeviceError, match=r"refused the PTX: error 218 \(CUDA_ERROR_218\)\n.*line 7: Parsing error"
    ):
        devscope.compile(_SUM, default="cuda:0", cache=False)
    assert not loaded.contexts


def test_memory_runs_out(fake: Callable[..., FakeCuda]) -> None:
    loaded, executable = total(fake)
    with executable:
        executable(*ones(30))
        loaded.fails = {"cuMemAlloc_v2": OUT_OF_MEMORY}
        expected = executable(*ones(600))  # what earlier calls left is freed, and memory asked for again
        np.testing.assert_array_equal(expected, 1 + np.arange(600))
        with pytest.raises(DeviceError, match=r"cuda:0 \(fake 0\).*error 2 \(CUDA_ERROR_2\)"):
            executable(*ones(MEMORY // 4))
        np.testing.assert_array_equal(executable(*ones(3)), [1, 2, 3])


def test_a_kernel_fails(fake: Callable[..., FakeCuda]) -> None:
    """Nothing works after that: CUDA's contexts are lost, and each call says so."""
    loaded, executable = total(fake)
    executable(*ones())
    loaded.error = ILLEGAL_ADDRESS
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"cuda:0 \(fake 0\).*error 700 \(CUDA_ERROR_700\)"):
            executable(*ones())
    loaded.error = 0
    executable.close()


def test_launches_that_are_refused(fake: Callable[..., FakeCuda]) -> None:
    loaded, executable = total(fake)
    with executable:
        executable(*ones())
        loaded.fails = {"cuLaunchKernel": 701}
        with pytest.raises(DeviceError, match=r"error 701 \(CUDA_ERROR_701\)"):
            executable(*ones())
        np.testing.assert_array_equal(executable(*ones(2)), [1, 2])


def test_page_locked_memory_is_read_before_a_call_ends(fake: Callable[..., FakeCuda]) -> None:
    """CUDA reads such memory after the call that copies it."""
    loaded = fake(seed=3, page_locked=True)
    with devscope.compile(_SUM, default="cuda:0", cache=False) as executable:
        for _ in range(20):
            x, y = ones()
            expected = x + y
            found = executable(x, y)
            x[:] = y[:] = np.nan
            np.testing.assert_array_equal(found, expected)
    assert loaded.calls["cuStreamSynchronize"] > 40


def test_cached_binaries(fake: Callable[..., FakeCuda], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's own code is kept; a driver that does not want it is given PTX again."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    loaded = fake()
    for refused, built in ((0, 1), (0, 1), (209, 2)):
        loaded.fails = {"cuModuleLoadData": refused} if refused else {}
        with devscope.compile(_SUM, default="cuda:0") as program:
            np.testing.assert_array_equal(program(*ones(2)), [1, 2])
        assert loaded.calls["cuLinkComplete"] == built


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_processes_say_so(fake: Callable[..., FakeCuda]) -> None:
    fake()
    list_devices()
    if (child := os.fork()) == 0:
        try:
            cuda.cuda_devices()
        except DeviceError as error:
            os._exit(3 if "forked" in str(error) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
