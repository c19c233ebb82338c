"""A saved program computes the same after loading, on devices named then, without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import references  # noqa: F401  (registers the cases)
from program_case import CASES
from test_programs import PROGRAMS, check_case

import devscope

pytestmark = pytest.mark.fuzz

_RUN = """\
import sys
for name in ("torch_mlir", "mlir", "xdsl"):
    sys.modules[name] = None
import devscope, numpy as np
with np.load(sys.argv[2]) as arrays, devscope.load(sys.argv[1]) as executable:
    values = executable(*arrays.values())
np.savez(sys.argv[3], *(values if isinstance(values, tuple) else (values,)))
"""


@pytest.mark.parametrize("name", ["two_devices", "constants_large", "lstm", "own_kernels", "several_entries"])
def test_load(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.dsx"
    mapping = {"opencl:1": "opencl:0"} if name in ("two_devices", "own_kernels") else {}
    with devscope.compile(PROGRAMS / f"{name}.mlir", devices=mapping, cache=False) as executable:
        executable.save(path)
    rng = np.random.default_rng(int(os.environ["DEVSCOPE_TEST_SEED"]))
    with devscope.load(path, devices=mapping) as executable:
        for case in CASES[name]:
            check_case(executable, case, rng)


@pytest.mark.not_emulated
def test_load_without_the_compiler(tmp_path: Path) -> None:
    program, given, found = tmp_path / "program.dsx", tmp_path / "given.npz", tmp_path / "found.npz"
    with devscope.compile(PROGRAMS / "constants_large.mlir", cache=False) as executable:
        executable.save(program)
    (case,) = CASES["constants_large"]
    arrays = [argument.array(np.random.default_rng(46), {"n": 5}) for argument in case.arguments]
    np.savez(given, *arrays)
    subprocess.run([sys.executable, "-c", _RUN, program, given, found], check=True, timeout=120)
    with np.load(found) as values:
        for value, expected in zip(values.values(), case.expected(arrays), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)
