"""Planned storage: results depend neither on the plan nor on shared memory, and no two live buffers share bytes,
which a fixture of this folder checks of every program that is compiled."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_case import share
from random_program import Generator

import devscope
from devscope.api import CompileOptions, build
from devscope.errors import LoweringError, PlanError
from devscope.pipeline import compile_source
from devscope.runtime.executable import Executable

PROGRAMS = {path.stem: path for path in (Path(__file__).parent / "programs").glob("*.mlir")}
pytestmark = [pytest.mark.fuzz, pytest.mark.sampled(2)]

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
RANDOM = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 6)

CONFIGURATIONS = (("cpu:0", "host"), ("opencl:0", "host"), ("cpu:0", "open"))


class _Planned(Exception):
    """The compilation has come as far as is needed."""


def plan_storage(source: Any, options: CompileOptions) -> None:
    """Compile until storage is planned, and so checked by a fixture of this folder."""

    def observe(stage: str, module: Any) -> None:
        if stage == "memory":
            raise _Planned

    with pytest.raises(_Planned):
        compile_source(source, options, observe)


@pytest.mark.parametrize("name", share(PROGRAMS, 2))
def test_no_bytes_are_shared(name: str, shared_machine: Path) -> None:
    """On a machine of one memory, and without annotations on the device.

    test_shared_memory compiles the same for this machine with the host as the default, test_programs for others.
    """
    path = PROGRAMS[name]
    targets = {"cuda:0": "opencl"} if '"cuda", 0' in path.read_text() else {}
    plan_storage(path, CompileOptions("opencl:0", targets=targets, machine=shared_machine))


@pytest.mark.parametrize("number", range(RANDOM))
def test_results_do_not_depend_on_the_plan(number: int, shared_machine: Path) -> None:
    rng = np.random.default_rng([SEED, number, 4])
    program = Generator(rng).program()
    default, arguments = CONFIGURATIONS[number % len(CONFIGURATIONS)]
    try:
        results: list[list[Any]] = []
        calls = [program.inputs(rng, rows, 3) for rows in (1, 4)]
        for storage, machine in itertools.product(("planned", "dynamic"), (None, shared_machine)):
            try:
                built = build(program.text, CompileOptions(default, arguments, storage=storage, machine=machine))
            except (PlanError, LoweringError):
                return  # what is refused has no results
            with Executable(built, {device.name: "opencl:0" for device in built.devices}) as executable:
                values = [executable(*call) for call in calls for _ in range(2)]
                results.append([v for value in values for v in (value if isinstance(value, tuple) else (value,))])
        for same in zip(*results, strict=True):
            for other in same[1:]:
                np.testing.assert_array_equal(same[0], other)
    except BaseException as error:
        error.add_note(f"program {number} with DEVSCOPE_TEST_SEED={SEED}, {default=}, {arguments=}")
        error.add_note(program.text)
        raise


def test_what_a_kernel_fills_is_not_in_the_memory_of_its_result() -> None:
    """It is written, too: which of both were there in the end nothing would say."""
    text = """
      #nothing = affine_map<(d0, d1) -> ()>
      #own = affine_map<(d0, d1) -> (d0, d1)>
      #device = #device.scope<"opencl", 0 : i64, "", "">
      func.func @main(%x: tensor<2x1xi32>) -> tensor<2x1xi32> {
        %c = arith.constant dense<2147483647> : tensor<i32>
        %u = tensor.empty() {device.scope = #device} : tensor<f32>
        %e = tensor.empty() : tensor<2x1xi32>
        %f = linalg.generic {indexing_maps = [#nothing, #own], iterator_types = ["parallel", "parallel"]}
            ins(%c : tensor<i32>) outs(%e : tensor<2x1xi32>) {
        ^bb0(%in: i32, %out: i32):
          linalg.yield %in : i32
        } -> tensor<2x1xi32>
        %r = linalg.generic {indexing_maps = [#own, #nothing, #own], iterator_types = ["parallel", "parallel"]}
            ins(%x, %u : tensor<2x1xi32>, tensor<f32>) outs(%f : tensor<2x1xi32>)
            attrs = {device.scope = #device} {
        ^bb0(%in: i32, %unused: f32, %out: i32):
          %least = arith.minsi %out, %in : i32
          linalg.yield %least : i32
        } -> tensor<2x1xi32>
        return %r : tensor<2x1xi32>
      }"""
    x = np.array([[-7], [3]], np.int32)
    np.testing.assert_array_equal(devscope.run(text, x, cache=False), x)
