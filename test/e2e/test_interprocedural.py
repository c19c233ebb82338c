"""What crosses the border of host and device in compiled programs: only what has to.

Compiled with and without the passes, programs compute the same; with them they do no more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_program import Generator
from xdsl.dialects.builtin import ModuleOp

import devscope
from devscope import pipeline
from devscope.analysis.manager import AnalysisManager
from devscope.api import CompileOptions, build
from devscope.errors import LoweringError, PlanError
from devscope.passes import simplify_across_functions
from devscope.passes.device_inline import DeviceInlinePass
from devscope.passes.device_merge import DeviceMergePass
from devscope.passes.device_sccp import DeviceSccpPass
from devscope.passes.device_split import DeviceSplitPass
from devscope.passes.device_unused import DeviceUnusedPass
from devscope.passes.device_verify import verify_module
from devscope.planning import plan_source
from devscope.runtime.executable import Executable
from devscope.runtime.pool import CopyCount, Counters

pytestmark = pytest.mark.fuzz

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
NUMBER = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 6)
PROGRAMS = Path(__file__).parent / "programs"

Results = tuple[Any, ...]


def run(source: str, *arguments: Any, default: str = "cpu:0") -> tuple[Results, Counters]:
    """The results of a call, and what it did."""
    built = build(source, CompileOptions(default, "host"))
    with Executable(built, {device.name: "opencl:0" for device in built.devices}) as executable:
        values = executable(*arguments)
        return values if isinstance(values, tuple) else (values,), executable.counters()


def without_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(module: ModuleOp) -> bool:
        return False

    monkeypatch.setattr(pipeline, "simplify_across_functions", nothing)


def test_known_results_need_neither_launch_nor_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (PROGRAMS / "known_results.mlir").read_text()
    x = np.linspace(-1, 1, 7, dtype=np.float32)
    values, counters = run(source, x)
    assert counters.h2d == CopyCount(1, x.nbytes)
    assert counters.d2h == CopyCount(1, x.nbytes)
    without_passes(monkeypatch)
    same, more = run(source, x)
    for value, expected in zip(values, same, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert more.d2h.copies > 1
    assert sum(more.launches.values()) > sum(counters.launches.values())


@pytest.mark.parametrize("number", range(NUMBER))
def test_random_programs_compute_the_same_without(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([SEED, number, 4])
    program = Generator(rng).program()
    given = program.inputs(rng, 3, 2)
    default = ("cpu:0", "opencl:0")[number % 2]
    try:
        values, counters = run(program.text, *given, default=default)
        without_passes(monkeypatch)
        same, more = run(program.text, *given, default=default)
        runs = program.runs(given)
        assert program.problem(values, runs) is None
        assert program.problem(same, runs) is None
        assert counters.h2d.copies <= more.h2d.copies
        assert counters.d2h.copies <= more.d2h.copies
    except (PlanError, LoweringError):
        return  # what is refused crosses no border
    except BaseException as error:
        error.add_note(f"program {number} with DEVSCOPE_TEST_SEED={SEED}, {default=}")
        error.add_note(program.text)
        raise


@pytest.mark.parametrize("number", range(NUMBER))
def test_every_pass_leaves_a_module_that_verifies(number: int) -> None:
    program = Generator(np.random.default_rng([SEED, number, 5])).program()
    try:
        planned = plan_source(program.text, CompileOptions(("cpu:0", "opencl:0")[number % 2], "host"))
        DeviceSplitPass().run(AnalysisManager(planned.module))
    except (PlanError, LoweringError):
        return  # what is refused is not split
    for change in (DeviceInlinePass(), DeviceSccpPass(), DeviceUnusedPass(), DeviceMergePass()):
        change.run(AnalysisManager(planned.module))
        planned.module.verify()
        verify_module(planned.module)
        planned.session.to_mlir(planned.module)
    simplify_across_functions(AnalysisManager(planned.module))
    before = str(planned.module)
    simplify_across_functions(AnalysisManager(planned.module))
    assert str(planned.module) == before, "a third round has nothing left to do"


def test_programs_for_the_host_are_left_alone() -> None:
    source = """
    func.func private @f(%n: i32, %unused: i32) -> i32 {
      return %n : i32
    }
    func.func @main(%n: i32) -> i32 {
      %0 = call @f(%n, %n) : (i32, i32) -> i32
      return %0 : i32
    }"""
    planned = plan_source(source, CompileOptions("cpu:0", "host"))
    DeviceSplitPass().run(AnalysisManager(planned.module))
    before = str(planned.module)
    assert not simplify_across_functions(AnalysisManager(planned.module))
    assert str(planned.module) == before


RECURSION = """
#scope = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {calls = false}>, "">
func.func private @power(%x: tensor<4xf32> {device.scope = #scope}, %n: i32)
    -> (tensor<4xf32> {device.scope = #scope}) {
  %one = arith.constant 1 : i32
  %last = arith.cmpi sle, %n, %one : i32
  %0 = scf.if %last -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %less = arith.subi %n, %one : i32
    %1 = func.call @power(%x, %less) : (tensor<4xf32>, i32) -> tensor<4xf32>
    %2 = arith.mulf %1, %x : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %0 = call @power(%x, %n) : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_recursion_is_an_error_where_the_target_cannot_call() -> None:
    with pytest.raises(LoweringError, match=r"11:10: error: functions .* cannot be inlined: 'power' -> 'power'"):
        build(RECURSION, CompileOptions("cpu:0", "host"))


def test_recursion_runs_where_the_target_can_call() -> None:
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    source = RECURSION.replace('#device.target<"opencl", {calls = false}>', '""')
    with devscope.compile(source, arguments="host", cache=False) as executable:
        np.testing.assert_allclose(executable(x, np.int32(3)), x**3, rtol=1e-6)
