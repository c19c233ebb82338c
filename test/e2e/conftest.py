"""Makes the modules of this folder importable, keeps the user's cache out of the tests."""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cuda"))

from emulation import emulated_cuda, emulator, found_on_cuda, on_cuda, set_order
from storage_check import check_storage

import devscope
from devscope.analysis.machine import Machine as MachineDescription
from devscope.analysis.machine import nominal_machine
from devscope.analysis.machine_file import machine_toml
from devscope.lowering import stages
from devscope.lowering.codegen.device_emitter import SPIRV, DeviceEmitter, Machine
from devscope.runtime import executable
from devscope.runtime.cache import DIRECTORY_VARIABLE, DiskCache
from devscope.runtime.drivers.build_apart import problem_by_validator
from devscope.runtime.drivers.opencl import opencl_devices

EMULATE_VARIABLE = "DEVSCOPE_TEST_EMULATE"
CUDA_VARIABLE = "DEVSCOPE_TEST_CUDA"


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for all processes of pytest-xdist: what one of them has compiled, no other test compiles again."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "devscope-cache"
    directory.mkdir(exist_ok=True)
    patch = pytest.MonkeyPatch()
    patch.setenv(DIRECTORY_VARIABLE, str(directory))
    yield directory
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def checked_storage() -> Iterator[None]:
    """Planned storage is checked in every compilation of this folder: no two live buffers share bytes."""

    def plan_and_check(module: Any, spaces: Any, roots: dict[str, str], planned: bool) -> Any:
        arenas = stages_plan_memory(module, spaces, roots, planned)
        check_storage(module, list(roots))
        return arenas

    stages_plan_memory = stages.plan_memory
    patch = pytest.MonkeyPatch()
    patch.setattr(stages, "plan_memory", plan_and_check)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def valid_kernels(cache_directory: Path) -> Iterator[None]:
    """SPIR-V that is compiled in this folder is valid, where SPIRV-Tools are installed.

    Programs have the same kernels in several tests: the code of a text is made, and looked at, once.
    """

    def emit_valid(emitter: DeviceEmitter, text: str, machine: Machine = SPIRV) -> bytes:
        key = hashlib.sha256(f"{machine}\n{text}".encode()).hexdigest()
        code = known.load_blob(key)
        if code is None:
            code = emit(emitter, text, machine)
            problem = problem_by_validator(code) if machine == SPIRV else None
            assert problem is None, problem
            known.store_blob(key, code)
        return code

    known = DiskCache(cache_directory / "emitted")
    emit = DeviceEmitter.emit
    patch = pytest.MonkeyPatch()
    patch.setattr(DeviceEmitter, "emit", emit_valid)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def cuda(cache_directory: Path) -> Callable[[], AbstractContextManager[object]]:
    """In its context, the machine has CUDA devices, which are emulated."""
    return lambda: emulated_cuda(cache_directory / "emulated")


#: What modules have whose tests are of OpenCL only.
_OPENCL_ONLY = ("delayed_queues", "opencl_functions", "opencl_queues", "opencl_devices")


@pytest.fixture(scope="session", autouse=True)
def everything_on_cuda(cache_directory: Path) -> Iterator[bool]:
    """``make emulate``, ``make cuda``: what is for OpenCL is compiled for CUDA instead, and emulated, or not."""
    emulates = EMULATE_VARIABLE in os.environ and emulator() is not None
    if not emulates and CUDA_VARIABLE not in os.environ:
        yield False
        return
    patch = pytest.MonkeyPatch()
    with emulated_cuda(cache_directory / "emulated") if emulates else nullcontext():
        patch.setattr(devscope, "compile", on_cuda(devscope.compile))
        patch.setattr(executable, "resolve_devices", found_on_cuda(executable.resolve_devices))
        yield True
        patch.undo()


@pytest.fixture(autouse=True)
def on_cuda_if_it_can_be(request: pytest.FixtureRequest, everything_on_cuda: bool) -> None:
    if not everything_on_cuda:
        return
    of_opencl = any(hasattr(request.module, name) for name in _OPENCL_ONLY)
    if of_opencl or any(word in request.function.__name__ for word in ("opencl", "ptx")):
        pytest.skip("about OpenCL's functions, or what it lacks")
    if request.node.get_closest_marker("not_emulated"):
        pytest.skip("about other processes, a driver's memory, its targets or its speed")
    if EMULATE_VARIABLE in os.environ:
        set_order(zlib.crc32(request.node.name.encode()) % 97)


@pytest.fixture(params=["shared", "apart"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Host and device in one memory, as the driver offers it, or with copies on a queue of their own."""
    if request.param == "apart":
        from devscope.runtime.drivers import opencl

        units = opencl._compute_units("opencl:0")  # pyright: ignore[reportPrivateUsage]
        for device in [*opencl_devices()[0], *units]:
            monkeypatch.setattr(device, "shares_memory", False)
    return request.param


@pytest.fixture(scope="session")
def shared_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The description of a machine whose host and devices all reach each other's memory."""
    devices = ("cpu:0", "opencl:0", "opencl:1", "cuda:0")
    nominal = nominal_machine(devices, "cpu:0")
    path = tmp_path_factory.mktemp("machine") / "machine.toml"
    path.write_text(machine_toml(MachineDescription(nominal.devices, nominal.links, shared=(devices,))))
    return path
