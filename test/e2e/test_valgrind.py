"""Saved programs under valgrind's memcheck: their code and the native runtime's, not Python's or the drivers'."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import devscope
from devscope.lowering.codegen.host_object import compile_host_object
from devscope.runtime.file_format import save_program
from devscope.runtime.native import ENTRY_PREFIX, call_symbol
from devscope.runtime.program import Entry, Program
from devscope.runtime.seal import seal

# valgrind does not know all instructions of this machine's CPU.
CPU = "x86-64-v2" if platform.machine() == "x86_64" else "generic"

# Host memory that is made, freed and returned, strided copies, a failing assertion; with a device also buffers,
# constants, launches and copies.
PROGRAM = """
#cpu = #device.target<"cpu", {{cpu = "{cpu}"}}>
#there = #device.scope<"{type}", 0 : i64, "", "">
func.func @main(%x: tensor<?x8xf32>, %holds: i1) -> (tensor<?x8xf32>, tensor<8x?xf32>)
    attributes {{device.target = #cpu}} {{
  %weights = arith.constant {{device.scope = #there}} dense<0.5> : tensor<8x8xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %product = linalg.matmul {{device.scope = #there}} ins(%x, %weights : tensor<?x8xf32>, tensor<8x8xf32>)
      outs(%x : tensor<?x8xf32>) -> tensor<?x8xf32>
  %sum = arith.addf %product, %x : tensor<?x8xf32>
  cf.assert %holds, "it must hold"
  %other = tensor.empty(%n) : tensor<8x?xf32>
  %turned = linalg.transpose ins(%sum : tensor<?x8xf32>) outs(%other : tensor<8x?xf32>) permutation = [1, 0]
  return %sum, %turned : tensor<?x8xf32>, tensor<8x?xf32>
}}
"""

# Writes behind what it has allocated: valgrind must see that, or it sees nothing of compiled code.
BROKEN = f"""
declare ptr @devscope_host_alloc(i64)
declare void @_mlir_memref_to_llvm_free(ptr)
define void @{ENTRY_PREFIX}main() {{
  %memory = call ptr @devscope_host_alloc(i64 8)
  %behind = getelementptr i8, ptr %memory, i64 100
  store volatile i8 1, ptr %behind
  call void @_mlir_memref_to_llvm_free(ptr %memory)
  ret void
}}
"""

RUN = """
import sys
import numpy as np
from devscope.errors import ExecutionError
from devscope.runtime.executable import Executable

path, broken = sys.argv[1:]
with Executable.load(path, cache=None) as executable:
    for n in (1, 5, 300):
        x = np.ones((n, 8), np.float32)
        total, turned = executable(x, True)
        assert np.all(total == 6) and np.array_equal(total.T, turned)
    try:
        executable(x, False)
    except ExecutionError as error:
        assert "it must hold" in str(error)
Executable.load(broken, cache=None)()
print("done")
"""


def save_broken(path: Path) -> None:
    entry = f"{ENTRY_PREFIX}main"
    code = compile_host_object(BROKEN, [entry], cpu=CPU)
    save_program(seal(Program({"main": Entry(call_symbol(entry), [], [])}, code.data, code.triple)), path)


def compiled_code_reports(log: str) -> list[str]:
    """What memcheck says of code that belongs to no file, but not of kernels, which drivers call, nor that what
    belongs to a thread might be lost: `make_threads` of pool.c makes threads that live as long as the process."""
    compiled = re.compile(r": \?\?\?$", re.MULTILINE)
    others = re.compile(r"libintelocl|libtbb|libOpenCL|are possibly lost in .*: _dl_allocate_tls \(", re.DOTALL)
    reports = re.split(r"\n==\d+== \n", log)
    return [text for text in reports if compiled.search(text) and not others.search(text)]


@pytest.mark.not_emulated
@pytest.mark.parametrize("kind", ["cpu", pytest.param("opencl", marks=pytest.mark.long)])
def test_memcheck(kind: str, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("this machine has no valgrind")
    paths = [tmp_path / f"{name}.dsx" for name in (kind, "broken")]
    devscope.compile(PROGRAM.format(type=kind, cpu=CPU), cache=False).save(paths[0])
    save_broken(paths[-1])
    log = tmp_path / "log"
    options = ["--smc-check=all-non-file", "--leak-check=full", "--error-limit=no", f"--log-file={log}"]
    process = subprocess.run(
        ["valgrind", *options, sys.executable, "-c", RUN, *map(str, paths)],
        # Python's own allocator, and numpy's threads, would hide what is ours.
        env={**os.environ, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout == "done\n", process.stderr
    (report,) = compiled_code_reports(log.read_text(encoding="utf-8"))
    assert "Invalid write of size 1" in report
