"""Which devices there are and which of them a program gets."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from handmade import spirv

from devscope.errors import DeviceError, DeviceNotFoundError, OptionError
from devscope.runtime.devices import (
    check_shared_memory,
    driver_problems,
    list_devices,
    memory_groups,
    resolve_devices,
)
from devscope.runtime.drivers import opencl, opencl_device, opencl_libraries
from devscope.runtime.drivers.cpu import HOST
from devscope.runtime.drivers.opencl_device import SharedContext
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.program import DeviceSpec, Program


def test_list(device: Any) -> None:
    found = list_devices()
    assert [info.name for info in found] == ["cpu:0", *(f"opencl:{i}" for i in range(len(found) - 1))]
    for info in found:
        assert info.memory_bytes > 0
        assert info.description
        assert info.describe().startswith(f"{info.name}: {info.description} (")
    opencl_info = found[1]
    assert opencl_info.type == "opencl"
    assert opencl_info.max_workgroup_size > 0
    assert opencl_info.spirv_versions
    assert json.loads(json.dumps(opencl_info.to_json()))["name"] == "opencl:0"


def test_default_and_mapped(device: Any) -> None:
    virtual = {"cpu:0": "cpu", "opencl:0": "opencl", "opencl:1": "opencl", "cuda:0": "opencl", "cpu:1": "cpu"}
    mapping = {"opencl:1": "opencl:0", "cuda:0": "opencl:0", "cpu:1": "cpu:0"}
    found = resolve_devices(virtual, mapping)
    assert {name: physical.name for name, physical in found.items()} == {
        "cpu:0": "cpu:0",
        "opencl:0": "opencl:0",
        "opencl:1": "opencl:0",
        "cuda:0": "opencl:0",
        "cpu:1": "cpu:0",
    }


@pytest.mark.parametrize(
    ("virtual", "mapping", "message"),
    [
        (
            {"opencl:9": "opencl"},
            {},
            "needs device 'opencl:9', .*\n.*has: cpu:0, opencl:0.*\n.*'opencl:9': 'opencl:0'",
        ),
        ({"opencl:0": "opencl"}, {"opencl:0": "opencl:9"}, r"'opencl:0' \(mapped to 'opencl:9'\)"),
        ({"cuda:0": "opencl"}, {}, "needs device 'cuda:0'.*\n.*\n.*'cuda:0': 'opencl:0'"),
        ({"opencl:0": "cuda"}, {}, r"needs device 'opencl:0' \(compiled for 'cuda'\)"),
        ({"cuda:0": "cuda"}, {}, "needs device 'cuda:0'.*\n.*\n.*CUDA devices need NVIDIA's driver"),
        ({"board:0": "board"}, {}, "needs backend 'board', which is not installed\n.*installed: .*blas"),
        ({"cpu:3": "cpu"}, {}, "needs device 'cpu:3'.*\n.*\n.*'cpu:3': 'cpu:0'"),
        ({"opencl:0": "opencl"}, {"opencl:0": "opencl"}, "mapped to 'opencl'"),
    ],
)
def test_missing_devices(device: Any, virtual: Any, mapping: Any, message: str) -> None:
    with pytest.raises(DeviceNotFoundError, match=message):
        resolve_devices(virtual, mapping)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (
            {"opencl:0": "cpu:0"},
            "'opencl:0' cannot run on 'cpu:0': its code was compiled for device type 'opencl'",
        ),
        ({"cpu:0": "opencl:0"}, "'cpu:0' cannot run on 'opencl:0'"),
        ({"opencl:1": "opencl:0"}, "names 'opencl:1', which the program does not use\n.*cpu:0, opencl:0"),
        ({"opencl:0": 0}, "'opencl:0' is mapped to 0, which is not the name of a device"),
    ],
)
def test_wrong_mappings(mapping: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        resolve_devices({"cpu:0": "cpu", "opencl:0": "opencl"}, mapping)


def test_compute_units_share_a_context(device: Any) -> None:
    """Of a device with only one, that one is the device."""
    assert device.partitionable
    last = min(device.compute_units, 2) - 1
    found = resolve_devices(
        {"opencl:0": "opencl", "opencl:1": "opencl"}, {"opencl:0": "opencl:0.0", "opencl:1": f"opencl:0.{last}"}
    )
    one, two = (found[name] for name in ("opencl:0", "opencl:1"))
    assert isinstance(one, opencl_device.OpenCLDevice)
    assert isinstance(two, opencl_device.OpenCLDevice)
    assert (one.compute_units, two.compute_units) == (1, 1)
    assert one.context() == two.context()
    assert (one.handle == two.handle) == (last == 0)
    assert (one.context() == device.context()) == (last == 0)
    with pytest.raises(DeviceNotFoundError, match=r"mapped to 'opencl:0\.9999'"):
        resolve_devices({"opencl:0": "opencl"}, {"opencl:0": "opencl:0.9999"})


def test_drivers_binaries_are_for_all_compute_units(device: Any) -> None:
    """What the driver built for one of them, no other one builds again, and it takes those of the whole device."""
    units: list[Any] = [opencl.DRIVER.find(f"opencl:0.{n}") for n in range(min(device.compute_units, 2))]
    assert {unit.identity for unit in units} == {device.identity}
    kept: list[bytes] = []
    for place in (device, *units):
        program, built = place.build(spirv())
        assert built
        kept.append(built)
        program.release()
        for binary in kept:
            program, built = place.build(b"not built", binary)
            assert built is None
            program.release_kernel(program.create_kernel("add", 4))
            program.release()


def test_without_any_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> tuple[list[Any], list[str]]:
        return [], ["/lib/libbroken.so could not be loaded: no such file"]

    monkeypatch.setattr(opencl, "opencl_devices", nothing)
    assert [info.name for info in list_devices()] == ["cpu:0"]
    assert driver_problems() == ["/lib/libbroken.so could not be loaded: no such file"]
    with pytest.raises(DeviceNotFoundError, match=r"pip install 'devscope\[opencl\]'\n.*libbroken.so"):
        resolve_devices({"opencl:0": "opencl"})


def test_host_programs_load_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise AssertionError("a driver was looked for")

    monkeypatch.setattr(opencl, "opencl_devices", fail)
    assert resolve_devices({"cpu:0": "cpu"})["cpu:0"].name == "cpu:0"


def test_broken_driver_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / opencl_libraries.CPU_RUNTIME).write_bytes(b"not a library")
    monkeypatch.setattr(opencl_libraries, "_prefixes", lambda: [str(tmp_path)])
    libraries, problems = opencl_libraries.load_libraries()
    assert f"{opencl_libraries.CPU_RUNTIME} could not be loaded" in problems[0]
    # The list of files of the wheel still leads to the driver.
    assert any(library.path.endswith(opencl_libraries.CPU_RUNTIME) for library in libraries)


def test_library_without_the_api(device: Any) -> None:
    with pytest.raises(OSError, match="does not export the OpenCL API"):
        opencl_device.OpenCLLibrary("libc.so.6")


LIST = """
import sys
from devscope.runtime.drivers import opencl, opencl_libraries
if sys.argv[1] == "loader":
    opencl_libraries._cpu_runtimes = lambda: iter(())
if sys.argv[1] == "vendor":
    opencl_libraries._cpu_runtimes = opencl_libraries._loaders = lambda: iter(())
    opencl_libraries.VENDORS = sys.argv[2]
devices, problems = opencl.opencl_devices()
print([(d.name, d.description, d.library.path) for d in devices])
device = devices[0]
device.release_queue(device.create_queue())
"""


def list_in_process(environment: dict[str, str], *arguments: str) -> list[tuple[str, str, str]]:
    """Device lists are made once per process: other conditions need another one."""
    process = subprocess.run(
        [sys.executable, "-c", LIST, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return ast.literal_eval(process.stdout)


def test_no_environment_is_needed(device: Any) -> None:
    ((name, description, _),) = list_in_process({}, "default")[:1]
    assert (name, description) == ("opencl:0", device.description)


def vendor_directory(tmp_path: Path, path: str) -> str:
    (tmp_path / "driver.icd").write_text(path + "\n", encoding="utf-8")
    return str(tmp_path)


def test_registered_driver_through_a_loader(device: Any, tmp_path: Path) -> None:
    """A driver that the system registers is found through an ICD loader; Python packages bring one along."""
    environment = {"OCL_ICD_VENDORS": vendor_directory(tmp_path, device.library.path)}
    devices = list_in_process(environment, "loader")
    assert [description for _, description, _ in devices] == [device.description]
    assert "libOpenCL" in devices[0][2]


def test_driver_known_twice_is_listed_once(device: Any, tmp_path: Path) -> None:
    environment = {"OCL_ICD_VENDORS": vendor_directory(tmp_path, device.library.path)}
    assert len(list_in_process(environment, "default")) == len(list_in_process({}, "default"))


def test_registered_driver_without_a_loader(device: Any, tmp_path: Path) -> None:
    directory = vendor_directory(tmp_path, device.library.path)
    (tmp_path / "broken.icd").write_text("/nowhere/libnothing.so\n", encoding="utf-8")
    devices = list_in_process({}, "vendor", directory)
    assert [description for _, description, _ in devices] == [device.description]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 42, "12.0 TiB"),
        (-8, "-8 bytes"),
    ],
)
def test_format_bytes(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_who_reaches_whose_memory(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = opencl.opencl_devices()[0]
    first = found[0]
    near = [("cpu:0", info.name) for info in found if info.shares_memory]
    assert memory_groups()[: len(near)] == near
    assert not any("cpu:0" in group for group in memory_groups()[len(near) :])
    parts = [opencl.DRIVER.find(f"opencl:0.{number}") for number in range(2)]
    units = [unit for unit in parts if unit is not None]
    assert all(one.shares_memory_with(other) for one in units for other in units)
    assert all(first.shares_memory_with(unit) == (found[0].compute_units == 1) for unit in units)
    monkeypatch.setattr(found[0], "shares_memory", False)
    assert ("cpu:0", "opencl:0") not in memory_groups()
    assert not HOST.shares_memory_with(first)
    assert not first.shares_memory_with(HOST)
    assert first.shares_memory_with(first)


def test_a_program_that_relies_on_shared_memory(device: Any) -> None:
    """Devices of one type that do not share a context do not reach each other's memory."""
    found = opencl.opencl_devices()[0][0]
    other = replace(found, name="opencl:7", shared_context=SharedContext(found.library, [found.handle]))
    program = Program({}, b"", "", devices=[DeviceSpec(n + 1, "opencl", n, "opencl") for n in range(2)])
    program.shared = [(1, 2)]
    near: dict[str, Any] = {f"opencl:{n}": found for n in range(2)}
    check_shared_memory(program, near)
    message = r"for 'opencl:0' and 'opencl:1' that reach each other's memory; opencl:0 .* and opencl:7 .* do not"
    with pytest.raises(DeviceError, match=message) as caught:
        check_shared_memory(program, {**near, "opencl:1": other})
    assert "compile it with a machine description" in str(caught.value)
