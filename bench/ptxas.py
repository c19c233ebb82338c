"""What NVIDIA's assembler makes of the kernels of all test programs: registers, spills, shared memory.

Programs are compiled for sm_80; their PTX is assembled for each architecture, as a driver would do it. Needs
``ptxas``, no GPU.

    python bench/ptxas.py [--arches sm_80,sm_90,sm_100] [--programs mlp,cnn] [--kernels contraction]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import devscope
from devscope.compile_options import CompileOptions
from devscope.lowering.cuda import target

PROGRAMS = Path(__file__).parents[1] / "test" / "e2e" / "programs"


@dataclass(frozen=True)
class Kernel:
    """``spilled``: bytes that are stored and loaded; ``shared``: bytes of a workgroup."""

    name: str
    registers: int
    spilled: int
    shared: int


_USED = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?",
    re.DOTALL,
)


def assembled(ptx: bytes, arch: str) -> Iterator[Kernel]:
    """What ``ptxas`` says of the kernels of ``ptx``. Raises RuntimeError with its message if it refuses them."""
    command = ["ptxas", "-v", f"-arch={arch}", "/dev/stdin", "-o", "/dev/null"]
    result = subprocess.run(command, input=ptx, capture_output=True, check=False)
    said = (result.stdout + result.stderr).decode()
    if result.returncode:
        raise RuntimeError(said)
    for name, stores, loads, registers, shared in _USED.findall(said):
        yield Kernel(name, int(registers), int(stores) + int(loads), int(shared or 0))


def binaries(program: Path, arch: str) -> list[bytes]:
    """The PTX of all devices of a program, whatever these are in its text."""
    text = program.read_text(encoding="utf-8").replace('"opencl"', '"cuda"')
    text = re.sub(r'(#device\.target<"cuda"), \{[^}]*\}', rf'\1, {{arch = "{arch}"}}', text)
    built = devscope.build(text, CompileOptions(default="cuda:0"))
    return [binary for device in built.devices for binary in device.binaries]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--arches", default="sm_80,sm_90,sm_100")
    parser.add_argument("--programs", default=",".join(sorted(path.stem for path in PROGRAMS.glob("*.mlir"))))
    parser.add_argument("--kernels", default="", help="those only whose names have this")
    options = parser.parse_args()
    if shutil.which("ptxas") is None:
        sys.exit("no ptxas")
    arches = options.arches.split(",")
    target._DEFAULT = arches[0]  # pyright: ignore[reportPrivateUsage]
    print(f"| program | kernels | {' | '.join(f'{arch}: registers, spilled, shared' for arch in arches)} |")
    print(f"|---|---|{'---|' * len(arches)}")
    for name in options.programs.split(","):
        code = binaries(PROGRAMS / f"{name}.mlir", arches[0])
        found = {
            arch: [kernel for ptx in code for kernel in assembled(ptx, arch) if options.kernels in kernel.name]
            for arch in arches
        }
        cells = [
            f"{max(kernel.registers for kernel in kernels)}, {sum(kernel.spilled for kernel in kernels)}, "
            f"{max(kernel.shared for kernel in kernels)}"
            for kernels in found.values()
            if kernels
        ]
        if cells:
            print(f"| {name} | {len(found[arches[0]])} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
