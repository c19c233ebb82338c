"""Fixtures of the runtime's tests. They need an OpenCL device; one comes with ``pip install devscope[opencl]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import handmade

from devscope.runtime.cache import DIRECTORY_VARIABLE
from devscope.runtime.devices import driver_problems
from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.executable import Executable


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests share one cache of driver binaries and leave the user's alone."""
    directory = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv(DIRECTORY_VARIABLE, str(directory))
    yield directory
    patch.undo()


@pytest.fixture(scope="session")
def device() -> Any:
    """The first OpenCL device; a machine without one fails the tests that need it."""
    found, _ = opencl_devices()
    if not found:
        pytest.fail(
            "no OpenCL device found; install one with: pip install 'devscope[opencl]'\n"
            + "\n".join(driver_problems())
        )
    return found[0]


@pytest.fixture
def run_calls(device: Any) -> Iterator[Callable[..., Executable]]:
    """Makes executables whose entries are the functions of the native runtime."""
    made: list[Executable] = []

    def make(*devices: Any, constants: Any = (), mapping: dict[str, str] | None = None) -> Executable:
        program = handmade.calls_program(devices or [handmade.opencl(1)], constants)
        made.append(Executable(program, mapping))
        return made[-1]

    yield make
    for executable in made:
        executable.close()


@pytest.fixture
def add(device: Any) -> Iterator[Executable]:
    """``add`` on ``opencl:0``."""
    with Executable(handmade.add_program()) as executable:
        yield executable
