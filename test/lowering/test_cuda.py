"""Every program that is compiled for OpenCL is compiled for CUDA as well; what is made is assembled, not run."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import devscope
from devscope.cli.main import main
from devscope.compile_options import CompileOptions
from devscope.errors import DeviceNotFoundError
from devscope.lowering.codegen.device_emitter import Machine, shared_emitter
from devscope.lowering.cpu import target as host_target
from devscope.lowering.cuda import target
from devscope.lowering.gpu import to_llvm
from devscope.runtime.executable import Executable
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE, Program

pytestmark = pytest.mark.sampled(12)

PROGRAMS = Path(__file__).parents[1] / "e2e" / "programs"
ARCHES = {"sm_75": "6.3", "sm_80": "7.0", "sm_90": "7.8", "sm_100": "8.6"}
#: Emitted for all of them; each other program for one.
THOROUGH = ("math_f16", "math_f32", "math_f64", "math_integers", "own_kernels", "softmax")
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.mlir"))
CASES = [(name, list(ARCHES)[number % len(ARCHES)]) for number, name in enumerate(NAMES)]


@pytest.fixture(autouse=True)
def host_code_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here looks at the host's code, or runs it."""

    def no_optimisation(options: Any) -> int:
        return 0

    monkeypatch.setattr(host_target, "_level", no_optimisation)


def build(text: str) -> Program:
    """The program with all its devices of type cuda."""
    text = text.replace('"opencl"', '"cuda"')
    text = re.sub(r'(#device\.target<"cuda"), \{[^}]*\}', r"\1, {}", text)  # options of OpenCL
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


class RecordingEmitter:
    """Emits code, and keeps the LLVM IR that it is made of."""

    def __init__(self) -> None:
        self.texts: dict[bytes, str] = {}

    def emit(self, text: str, machine: Machine) -> bytes:
        ptx = shared_emitter().emit(text, machine)
        self.texts[ptx] = text
        return ptx


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_program(name: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_DEFAULT", arch)
    recorded = RecordingEmitter()
    monkeypatch.setattr(to_llvm, "shared_emitter", lambda: recorded)
    program = build((PROGRAMS / f"{name}.mlir").read_text())
    for device in program.devices:
        assert device.kind == "cuda"
        for number, ptx in enumerate(device.binaries):
            entries = {kernel.name for kernel in device.kernels if kernel.binary == number}
            check_ptx(ptx, arch, entries, tmp_path)
            for other in [other for other in ARCHES if name in THOROUGH and other != arch]:
                machine = target._machine({"arch": other})  # pyright: ignore[reportPrivateUsage]
                check_ptx(shared_emitter().emit(recorded.texts[ptx], machine), other, entries, tmp_path)


def check_ptx(ptx: bytes, arch: str, entries: set[str], place: Path) -> None:
    text = ptx.decode()
    assert f".version {ARCHES[arch]}\n.target {arch}\n" in text
    assert set(re.findall(r"\.entry (\w+)\(", text)) == entries
    assert ".extern .func" not in text, "nothing but the driver is needed"
    assemble(ptx, arch, place)


KERNEL = """
#wg = #gpu.address_space<workgroup>
func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %0 = "device.launch"(%n, %c1, %c1, %n, %c1, %c1, %n) ({
    "device.in"(%x) : (tensor<8xf32>) -> ()
    "device.out"(%e) : (tensor<8xf32>) -> ()
  }) {kernel = @kernel, device.scope = #device.scope<"cuda", 0 : i64, "", "">}
    : (index, index, index, index, index, index, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @kernel(%x: memref<?xf32>, %y: memref<?xf32>) attributes {device.kernel} {
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x
  %a = memref.alloca() : memref<4x4xf32, #wg>
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #wg>
  %b = memref.view %bytes[%c0][%t] : memref<?xi8, #wg> to memref<?xf32, #wg>
  %0 = memref.load %x[%t] : memref<?xf32>
  memref.store %0, %a[%t, %c0] : memref<4x4xf32, #wg>
  memref.store %0, %b[%t] : memref<?xf32, #wg>
  gpu.barrier
  %1 = memref.load %a[%c0, %t] : memref<4x4xf32, #wg>
  %2 = memref.load %b[%c0] : memref<?xf32, #wg>
  %3 = arith.addf %1, %2 : f32
  memref.store %3, %y[%t] : memref<?xf32>
  return
}
"""


def test_local_memory_of_a_hand_written_kernel() -> None:
    """Of static size it is a variable, of dynamic size what a launch asks for; both are noted as for OpenCL."""
    (device,) = devscope.build(KERNEL).devices
    (kernel,) = device.kernels
    ptx = device.binaries[0].decode()
    assert re.search(r"\.shared \.align \d+ \.b8 \w+\[64\]", ptx)
    assert ".extern .shared" in ptx
    assert "bar.sync" in ptx or "barrier.sync" in ptx
    assert kernel.arg_sizes == [0, 0, 8, 8, 8, 0, 0, 8, 8, 8, -64, DYNAMIC_LOCAL_SIZE]


def elementwise(body: str, of: str, to: str) -> str:
    """The PTX of a program that makes ``%t : to`` of each ``%x : of``."""
    text = f"""
func.func @main(%a: tensor<64x{of}>) -> tensor<64x{to}> {{
  %e = tensor.empty() : tensor<64x{to}>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  }} ins(%a : tensor<64x{of}>) outs(%e : tensor<64x{to}>) attrs = {{
    device.scope = #device.scope<"cuda", 0 : i64, #device.target<"cuda", {{arch = "sm_90"}}>, "">
  }} {{
  ^bb0(%x: {of}, %old: {to}):
    {body}
    linalg.yield %t : {to}
  }} -> tensor<64x{to}>
  return %r : tensor<64x{to}>
}}"""
    (device,) = devscope.build(text).devices
    return device.binaries[0].decode()


@pytest.mark.parametrize("bits", [8, 16])
def test_low_bits_of_a_float_are_taken_before_they_are_stored(bits: int) -> None:
    """ptxas 13.0 rounds the float to an integer where the store takes them: on an H100, 0.2 gave 0 for 205."""
    ptx = elementwise(
        f"%y = arith.addf %x, %x : f32\n%b = arith.bitcast %y : f32 to i32\n%t = arith.trunci %b : i32 to i{bits}",
        "f32",
        f"i{bits}",
    )
    assert "cvt.u16.u32 %low, %r" in ptx
    assert re.search(rf"st\.global\.b{bits} \t\[%rd\d+\], %low; \}}", ptx)
    assert not re.search(r"st\.\S*b(8|16) \t\[.*\], %r\d", ptx)


def test_signed_bits_in_bf16_are_0_and_minus_1() -> None:
    """LLVM's backend makes 1 of them from sm_90 on."""
    ptx = elementwise("%t = arith.sitofp %x : i1 to bf16", "i1", "bf16")
    assert "0xBF80" in ptx
    assert "cvt.rn.bf16" not in ptx


def test_a_saved_program_needs_the_device(tmp_path: Path) -> None:
    file = tmp_path / "kernel.dsx"
    save_program(devscope.build(KERNEL), file)
    with pytest.raises(DeviceNotFoundError, match="needs device 'cuda:0'"):
        Executable.load(file)


def test_a_program_for_opencl_is_compiled_for_cuda() -> None:
    text = KERNEL.replace('"cuda"', '"opencl"')
    program = devscope.build(text, CompileOptions(targets={"opencl:0": "cuda"}))
    assert [(device.name, device.compiled_for) for device in program.devices] == [("opencl:0", "cuda")]


def test_built_for_cuda_by_command(tmp_path: Path) -> None:
    """``--devices cuda:0`` builds what is placed there; the file says what it needs."""
    source, output = tmp_path / "kernel.mlir", tmp_path / "kernel.dsx"
    source.write_text(KERNEL, encoding="utf-8")
    assert main(["build", str(source), "--devices", "cuda:0", "-o", str(output)]) == 0
    assert [(device.name, device.compiled_for) for device in read_program(output).devices] == [("cuda:0", "cuda")]
