"""Every program that is compiled for OpenCL is compiled for CUDA as well; what is made is assembled, not run."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

import devscope
from devscope.compile_options import CompileOptions
from devscope.errors import DeviceNotFoundError, OptionError
from devscope.lowering.cuda import target
from devscope.runtime.executable import Executable
from devscope.runtime.file_format import save_program
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE, Program

PROGRAMS = Path(__file__).parents[1] / "e2e" / "programs"
ARCHES = {"sm_75": "6.3", "sm_80": "7.0", "sm_90": "7.8", "sm_100": "8.6"}
#: Compiled for all of them; each other program for one.
THOROUGH = ("math_f16", "math_f32", "math_f64", "math_integers", "own_kernels", "softmax")
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.mlir"))
CASES = [
    (name, arch)
    for number, name in enumerate(NAMES)
    for index, arch in enumerate(ARCHES)
    if name in THOROUGH or number % len(ARCHES) == index
]


def build(text: str) -> Program:
    """The program with all its devices of type cuda."""
    text = text.replace('"opencl"', '"cuda"')
    text = re.sub(r'(#device\.target<"cuda"), \{[^}]*\}', r"\1", text)  # options of OpenCL
    return devscope.build(text, CompileOptions(default="cuda:0"))


@cache
def assembler() -> str | None:
    found = shutil.which("ptxas")
    if found is not None:
        return found
    import nvidia  # the wheel nvidia-cuda-nvcc

    return next((str(p) for root in nvidia.__path__ for p in Path(root).glob("*/bin/ptxas")), None)


def assemble(ptx: bytes, arch: str, place: Path) -> None:
    try:
        program = assembler()
    except ImportError:
        program = None
    if program is None:
        pytest.skip("no ptxas")
    source = place / "kernels.ptx"
    source.write_bytes(ptx)
    command = [program, f"-arch={arch}", "-O0", str(source), "-o", "/dev/null"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_program(name: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_DEFAULT", arch)
    program = build((PROGRAMS / f"{name}.mlir").read_text())
    for device in program.devices:
        assert device.kind == "cuda"
        for number, ptx in enumerate(device.binaries):
            text = ptx.decode()
            assert f".version {ARCHES[arch]}\n.target {arch}\n" in text
            entries = set(re.findall(r"\.entry (\w+)\(", text))
            assert entries == {kernel.name for kernel in device.kernels if kernel.binary == number}
            assert ".extern .func" not in text, "nothing but the driver is needed"
            assemble(ptx, arch, tmp_path)
