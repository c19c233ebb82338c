"""Saved executables: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import add_program, calls_program, opencl, spirv

from devscope.errors import ExecutableFormatError
from devscope.runtime.executable import Executable
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.program import ConstantSpec, DeviceSpec, KernelSpec, Program, memory_of
from devscope.runtime.seal import seal

ONE_KERNEL = "define spir_kernel void @nothing() {\n  ret void\n}"


def sample() -> Program:
    """A program with two devices and constants of awkward sizes; needs no device to be saved."""
    constants = [
        (ConstantSpec("f32", [3]), np.array([1, 2, 3], np.float32)),
        (ConstantSpec("i8", [0]), np.empty(0, np.int8)),
        (ConstantSpec("i64", [2, 2]), np.arange(4, dtype=np.int64).reshape(2, 2).T),
        (ConstantSpec("i1", [5]), bytes([1, 0, 1, 1, 0])),
        (ConstantSpec("bf16", [70]), bytearray(range(140))),
    ]
    devices = [
        DeviceSpec(
            1,
            "opencl",
            0,
            "opencl",
            [spirv(), spirv(ONE_KERNEL)],
            [KernelSpec("pick", [0, 1, 4]), KernelSpec("nothing", [], 1)],
        ),
        DeviceSpec(2, "opencl", 4, "opencl"),
    ]
    program = calls_program(devices, constants)
    program.shared = [(0, 1), (1, 2)]
    program.report = {"stages": [{"name": "plan", "ms": 1.5}], "note": "ünïcode"}
    return seal(program)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "sample.dsx"
    save_program(sample(), path)
    return path


def parts(program: Program) -> Any:
    return (
        program.entries,
        program.host_object,
        (program.host_triple, program.host_cpu, program.host_features),
        program.devices,
        program.constants,
        [memory_of(data).tobytes() for data in program.constant_data],
        program.shared,
        program.report,
    )


def test_round_trip(saved: Path) -> None:
    loaded = read_program(saved)
    assert parts(loaded) == parts(sample())
    assert list(loaded.entries) == list(sample().entries)
    assert parts(read_program(saved, verify=False)) == parts(loaded)


def test_equal_programs_give_equal_files(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.dsx"
    save_program(read_program(saved), again)
    assert again.read_bytes() == saved.read_bytes()


def test_constants_are_mapped_and_aligned(saved: Path) -> None:
    for data in read_program(saved).constant_data:
        memory = memory_of(data)
        assert not memory.flags.writeable or memory.size == 0
        assert memory.ctypes.data % 64 == 0 or memory.size == 0


def test_saving_is_atomic(saved: Path) -> None:
    before = saved.read_bytes()
    broken = sample()
    broken.report = {"not JSON": object()}
    with pytest.raises(TypeError):
        save_program(broken, saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_saved_files_have_ordinary_permissions(saved: Path) -> None:
    other = saved.with_name("other")
    other.write_bytes(b"")
    assert saved.stat().st_mode == other.stat().st_mode


def test_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(ExecutableFormatError, match="cannot be written: No such file or directory"):
        save_program(sample(), tmp_path / "missing" / "x.dsx")


def test_executable_round_trip(device: Any, tmp_path: Path) -> None:
    x = np.arange(100, dtype=np.float32)
    with Executable(add_program([opencl(1, 5)]), {"opencl:5": "opencl:0"}) as exe:
        exe.save(tmp_path / "add.dsx")
    with Executable.load(tmp_path / "add.dsx", {"opencl:5": "opencl:0"}) as exe:
        assert np.array_equal(exe(x, x), x + x)
        # Saving over the file that is mapped does not disturb the loaded program.
        exe.save(tmp_path / "add.dsx")
        assert np.array_equal(exe(x, x), x + x)


def test_constants_from_a_file_reach_the_device(device: Any, tmp_path: Path) -> None:
    values = np.arange(100, dtype=np.float64)
    save_program(calls_program([opencl(1)], [(ConstantSpec("f64", [100]), values)]), tmp_path / "c.dsx")
    with Executable.load(tmp_path / "c.dsx") as exe:
        handle = exe.run("constant", 1, 0)
        result = np.empty_like(values)
        exe.run("copy", 1, handle, 0, 0, result.ctypes.data, 0, result.nbytes)
        assert np.array_equal(result, values)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ExecutableFormatError, match="cannot be read: No such file or directory"):
        Executable.load(tmp_path / "gone.dsx")
    with pytest.raises(ExecutableFormatError, match="cannot be read: Is a directory"):
        Executable.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"module {\n}\n", b"PK\3\4 but not really a zip", bytes(1000)])
def test_foreign_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.dsx"
    path.write_bytes(content)
    with pytest.raises(ExecutableFormatError, match="not a devscope executable, or it is damaged"):
        Executable.load(path)


def rewrite(path: Path, change: Any, *, skip: str = "") -> None:
    """Writes the archive again with a changed manifest, without one member if asked for."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents["manifest.json"])
    change(manifest)
    contents["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            if name != skip:
                archive.writestr(name, data)


def test_zip_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ExecutableFormatError, match="zip archive but not a devscope executable"):
        Executable.load(path)


def test_compressed_archive(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    with pytest.raises(ExecutableFormatError, match="damaged"):
        read_program(saved)


def test_no_version_of_devscope(saved: Path) -> None:
    rewrite(saved, lambda manifest: manifest.pop("devscope_version"))
    with pytest.raises(ExecutableFormatError, match="does not say by which devscope"):
        read_program(saved)


def test_other_versions(saved: Path) -> None:
    rewrite(saved, lambda manifest: manifest.update(format_version=99))
    with pytest.raises(ExecutableFormatError, match=r"in format 99 .* reads format 5 .*\n.*compile and save"):
        read_program(saved)
    rewrite(saved, lambda manifest: manifest.update(format_version=2, native_abi=7))
    with pytest.raises(ExecutableFormatError, match="native interface 7"):
        read_program(saved)


@pytest.mark.parametrize("member", ["host.o", "device1.bin", "constants.bin", "manifest.json"])
def test_every_member_is_checked(saved: Path, member: str) -> None:
    with zipfile.ZipFile(saved) as archive:
        content = archive.read(member)
    data = bytearray(saved.read_bytes())
    at = data.index(content[:64]) + len(content) // 2
    data[at] ^= 1
    saved.write_bytes(data)
    with pytest.raises(ExecutableFormatError, match=f"damaged: the contents of '{member}' are not what was"):
        read_program(saved)


def test_missing_member(saved: Path) -> None:
    rewrite(saved, lambda manifest: None, skip="device1.bin")
    with pytest.raises(ExecutableFormatError, match=r"damaged: it has no 'device1.bin'"):
        read_program(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("host"),
        lambda m: m["entries"]["alloc"].pop("symbol"),
        lambda m: m["entries"]["alloc"]["inputs"][0].update(extra=1),
        lambda m: m["entries"]["alloc"]["inputs"][0].update(dtype="f33"),
        lambda m: m["constants"][0].update(offset=10_000),
        lambda m: m["constants"][0].update(dtype="f33"),
        lambda m: m["devices"][0].update(slot=9),
        lambda m: m.update(members=[]),
        lambda m: m.update(devices=None),
    ],
)
def test_wrong_manifest(saved: Path, change: Any) -> None:
    rewrite(saved, change)
    with pytest.raises(ExecutableFormatError):
        read_program(saved)


def test_truncation_at_any_point(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in range(0, len(whole), 997):
        saved.write_bytes(whole[:length])
        with pytest.raises(ExecutableFormatError):
            read_program(saved)


def test_programs_that_contradict_themselves(tmp_path: Path) -> None:
    program = sample()
    program.constants.pop()
    with pytest.raises(ExecutableFormatError, match="4 constants and data for 5"):
        save_program(program, tmp_path / "x.dsx")
    program = sample()
    program.constants[0].shape = [4]
    with pytest.raises(ExecutableFormatError, match=r"constant 0 has 12 bytes, type \[4\] f32 needs 16"):
        Executable(program)
    program = sample()
    program.devices[1].slot = 7
    with pytest.raises(ExecutableFormatError, match=r"device slots are \[0, 1, 7\]"):
        Executable(program)


LOAD = """
import sys
import numpy as np
from devscope.runtime.executable import Executable

exe = Executable.load(sys.argv[1])
x = np.arange(100, dtype=np.float32)
assert np.array_equal(exe(x, x), x + x)
heavy = ("mlir", "torch_mlir", "xdsl", "pyopencl", "rich", "scipy", "torch", "devscope.lowering",
         "devscope.passes", "devscope.dialects")
assert not [name for name in heavy if name in sys.modules], sys.modules.keys()
"""


def test_loading_needs_no_compiler(device: Any, tmp_path: Path) -> None:
    path = tmp_path / "add.dsx"
    save_program(add_program(), path)
    process = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
